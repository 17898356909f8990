"""In what two Runs differ besides their times: read before any number, so told first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run
    from workbench.store.record import RunRecord
    from workbench.trace.table import Device, Trace

UNKNOWN = "not recorded"
"""What a trace alone does not tell and a Run of ours does."""

HEADER_VERSIONS = (
    *("cuda_runtime_version", "cuda_driver_version", "cupti_version"),
    *("hip_runtime_version", "hip_driver_version", "roctracer_version", "rocprofiler_version"),
    "schemaVersion",
)
HEADER_OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
BUSIER = 0.05
"""Share of the processors that others used on one side more than on the other."""
MOST_SHAPES = 3
MEASURED = frozenset({"ddp_logging", "rank_losses", "rank_peak_bytes"})
"""Of what was in force, what was measured: it differs between any two Runs, and is no setting."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing besides the step time in which two Runs differ."""

    where: str
    name: str
    first: Any
    second: Any


def differences(first: Run, second: Run) -> tuple[Difference, ...]:
    """Everything recorded in which two Runs differ, besides their times.

    In this order: versions, devices, ranks, settings, batch size, types and shapes of inputs,
    recording options, what cannot be trusted, load of the machine, seeds.
    """
    one, other = first.ranks[0], second.ranks[0]
    a, b = first.record, second.record

    def recorded(where: str) -> list[Difference]:
        return (
            [] if a is None or b is None else _differ(where, getattr(a, where), getattr(b, where))
        )

    return (
        *recorded("environment"),
        *_differ("versions", versions_in(one), versions_in(other)),
        *_differ("device", _devices(one), _devices(other)),
        *_differ("ranks", _job(first), _job(second)),
        *recorded("settings"),
        *(each for each in recorded("effective") if each.name not in MEASURED),
        *_work(a, b),
        *_inputs(one.trace, other.trace),
        *_differ("recording", _options(one), _options(other)),
        *recorded("record"),
        *_differ("trust", _violations(one), _violations(other)),
        *_load(a, b),
        *recorded("seeds"),
    )


def device_types(rank: RankAnalysis) -> frozenset[str]:
    """Types of the devices that worked, such as cuda or hip."""
    used = set(rank.device_indices)
    return frozenset(device.type for device in rank.trace.devices if device.index in used)


def device_names(rank: RankAnalysis) -> tuple[str, ...]:
    """Names of the devices that worked, each once."""
    return tuple(dict.fromkeys(device.name or device.type for device in _used(rank)))


def _differ(where: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    names = dict.fromkeys([*a, *b])
    return [
        Difference(where=where, name=name, first=a.get(name), second=b.get(name))
        for name in names
        if a.get(name) != b.get(name)
    ]


def versions_in(rank: RankAnalysis) -> dict[str, Any]:
    """Versions of libraries and drivers that the header of a trace tells."""
    header = rank.trace.header
    found = {n: _version(n, header[n]) for n in HEADER_VERSIONS if n in header}
    told = header.get("distributedInfo")
    if isinstance(told, Mapping) and "nccl_version" in told:
        found["nccl_version"] = told["nccl_version"]
    return found


def _version(name: str, value: Any) -> str:
    """A version as people write it; CUDA and HIP count it up in one whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return str(value)
    if name.startswith("cuda_"):
        return f"{value // 1000}.{value % 1000 // 10}"
    if name.startswith("hip_"):
        return f"{value // 10_000_000}.{value // 100_000 % 100}.{value % 100_000}"
    return str(value)


def _devices(rank: RankAnalysis) -> dict[str, Any]:
    """What the header tells of the devices that worked: all of a machine's are listed there."""
    described = _used(rank)
    counted = Counter(device.name or device.type for device in described)
    listed = ", ".join(f"{count} x {name}" for name, count in counted.items())
    sizes = {device.memory_bytes for device in described if device.memory_bytes}
    return {
        "devices": listed or "none recorded",
        "memory_bytes": max(sizes, default=None),
        "arch": ", ".join(sorted({device.arch for device in described if device.arch})) or None,
    }


def _used(rank: RankAnalysis) -> list[Device]:
    """The devices that worked, as the header describes them.

    Inside a container the header counts from 0 what the events call by the machine's number: a
    device that is not described is taken for the only kind that is.
    """
    named = [device for device in rank.trace.devices if device.name]
    kinds = {(device.name, device.arch, device.memory_bytes): device for device in named}
    only = next(iter(kinds.values())) if len(kinds) == 1 else None
    used = [d for d in rank.trace.devices if d.index in set(rank.device_indices)]
    return [only if only is not None and not d.name else d for d in used]


def _job(run: Run) -> dict[str, Any]:
    trace = run.ranks[0].trace
    told = trace.header.get("distributedInfo")
    return {
        "ranks opened": len(run.ranks),
        "rank": run.ranks[0].rank if len(run.ranks) == 1 else None,
        "world_size": trace.world_size,
        "backend": told.get("backend") if isinstance(told, Mapping) else None,
    }


def _inputs(a: Trace, b: Trace) -> Iterator[Difference]:
    """Types and shapes of the matrix operators, where both sides recorded them."""
    from workbench.analysis.difference.inputs import input_shapes, input_types

    types = input_types(a), input_types(b)
    if types[0] and types[1] and set(types[0]) != set(types[1]):
        yield Difference(
            where="inputs", name="types", first=", ".join(types[0]), second=", ".join(types[1])
        )
    shapes = input_shapes(a), input_shapes(b)
    if shapes[0] and shapes[1] and shapes[0] != shapes[1]:
        only = shapes[0] - shapes[1], shapes[1] - shapes[0]
        yield Difference(where="inputs", name="shapes", first=_some(only[0]), second=_some(only[1]))


def _some(shapes: frozenset[str]) -> str:
    """The first few, and how many more; the empty lists of inputs without a shape left out."""
    listed = sorted(shapes)
    text = "; ".join(shape.replace(",[]", "") for shape in listed[:MOST_SHAPES])
    more = len(listed) - MOST_SHAPES
    return f"{text}; and {more} more" if more > 0 else text or "none of its own"


def _options(rank: RankAnalysis) -> dict[str, Any]:
    from workbench.trace.table import Kind

    trace = rank.trace
    found: dict[str, Any] = {name: bool(trace.header.get(name)) for name in HEADER_OPTIONS}
    found["python stacks"] = len(trace.events.rows(Kind.PYTHON)) > 0
    found["operators"] = len(trace.events.rows(Kind.OPERATOR)) > 0
    return found


def _violations(rank: RankAnalysis) -> dict[str, str]:
    return {v.code: v.message for v in rank.own_trust.violations}


def _work(a: RunRecord | None, b: RunRecord | None) -> list[Difference]:
    """The batch size; of a trace alone that and the settings are not known."""
    if a is not None and b is not None:
        sizes = {"samples_per_step": a.samples_per_step}, {"samples_per_step": b.samples_per_step}
        return _differ("work", *sizes)
    told = {"settings and batch size": "recorded" if a else UNKNOWN}
    return _differ("work", told, {"settings and batch size": "recorded" if b else UNKNOWN})


def _load(a: RunRecord | None, b: RunRecord | None) -> list[Difference]:
    """The processors that others used; load always differs a little, that is not listed."""
    if a is None or b is None:
        return []
    name = "others_cpu_share"
    one, other = (None if each.load is None else each.load.get(name) for each in (a, b))
    if (one is None) == (other is None) and abs((one or 0.0) - (other or 0.0)) <= BUSIER:
        return []
    return [Difference(where="load", name=name, first=one, second=other)]
