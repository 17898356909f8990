"""Counts that the same code gives every time: they gate tightly where times cannot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from workbench.gate.sample import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from workbench.run.rank import RankAnalysis
    from workbench.store.record import RunRecord

_SYNCHRONIZES = re.compile(r"Synchronize(_v\d+|_ptsz)?$")


def counters(rank: RankAnalysis, record: RunRecord | None) -> dict[str, Sample]:
    """Counts of every steady step: launches, kernels, operators, copied bytes, allocations."""
    steps = rank.steps
    names = (
        *("kernels", "launches", "operators"),
        *("copied_bytes", "device_allocations", "synchronizations"),
    )
    if steps is None or not steps.steady.any():
        nothing = Sample(reason="the trace has no steps to count in")
        found = {f"{name}_per_step": nothing for name in names}
    else:
        found = {f"{name}_per_step": _missing(rank) for name in names}
        found["operators_per_step"] = _operators(rank)
        if rank.device_indices and not rank.voids("queue"):
            found |= _of_device(rank)
    return found | _compilation(record)


def _missing(rank: RankAnalysis) -> Sample:
    return Sample(
        reason="launches are not known" if rank.device_indices else "no device was recorded"
    )


def _operators(rank: RankAnalysis) -> Sample:
    from workbench.analysis.causes import operator_rows

    rows = operator_rows(rank.trace)
    if not rows.any():
        return Sample(reason="no operator was recorded")
    return _per_step(rank, rank.trace.events.ts[rows])


def _of_device(rank: RankAnalysis) -> dict[str, Sample]:
    import numpy as np

    from workbench.analysis.devices import work_rows
    from workbench.analysis.launch_calls import launch_calls_of
    from workbench.analysis.memory import DEVICE_ALLOCATION
    from workbench.trace.table import Kind

    trace, events, device = rank.trace, rank.trace.events, rank.device_indices[0]
    calls = launch_calls_of(trace, rank.launches, rank.steps, device)
    rows = work_rows(trace, device)
    rows = rows[(events.kind[rows] == Kind.MEMCPY) & (rank.launches.launch[rows] >= 0)]
    copied = events.ts[rank.launches.launch[rows]]
    size = events.bytes[rows].astype(np.float64)
    host = events.rows(Kind.RUNTIME, Kind.DRIVER)

    def called(pattern: re.Pattern[str]) -> Sample:
        codes = trace.name_codes(lambda name: bool(pattern.search(name)))
        return _per_step(rank, events.ts[host[np.isin(events.name[host], codes)]])

    bytes_ = (
        Sample(reason="the bytes of copies were not recorded")
        if (size < 0).any()
        else _per_step(rank, copied, size)
    )
    return {
        "launches_per_step": _per_step(rank, calls.start),
        "kernels_per_step": _per_step(rank, calls.start, calls.kernels.astype(np.float64)),
        "copied_bytes_per_step": bytes_,
        "device_allocations_per_step": called(DEVICE_ALLOCATION),
        "synchronizations_per_step": called(_SYNCHRONIZES),
    }


def _per_step(
    rank: RankAnalysis, at: NDArray[np.int64], weights: NDArray[np.float64] | None = None
) -> Sample:
    """How many happen in each steady step, or the sum of their weights."""
    import numpy as np

    steps = rank.steps
    assert steps is not None
    index = steps.step_of(at)
    inside = index >= 0
    counts = np.bincount(
        index[inside],
        weights=None if weights is None else weights[inside],
        minlength=len(steps),
    )[: len(steps)]
    return Sample(values=tuple(float(n) for n in counts[steps.steady]))


def _compilation(record: RunRecord | None) -> dict[str, Sample]:
    found: dict[str, Any] | None = None if record is None else record.compilation
    if found is None:
        nothing = Sample(reason="nothing was compiled")
        return {"graph_breaks": nothing, "recompiles": nothing}
    return {
        name: Sample(reason="not counted")
        if found.get(name) is None
        else Sample(values=(float(found[name]),))
        for name in ("graph_breaks", "recompiles")
    }
