"""The answers: the critical path of a step, and the most that each change could save."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from workbench.analysis.causes import CAUSES
from workbench.analysis.evidence import Evidence
from workbench.analysis.replay.graph import build_graph
from workbench.analysis.replay.path import CriticalPath
from workbench.analysis.replay.path import critical_path as path_of
from workbench.analysis.replay.replay import Replay, prepare
from workbench.analysis.replay.scenario import (
    CAUSE_LABELS,
    NOTHING_CHANGED,
    Scenario,
    faster_family,
    hidden,
    host_free,
    without_cause,
    without_late_ranks,
)
from workbench.analysis.replay.single_thread import ThreadReplay, thread_replay
from workbench.analysis.replay.span import span_of
from workbench.analysis.steps import Steps

MOST_UNEXPLAINED = 0.1
"""Above this share of the steps that the replay cannot explain, it tells nothing about them."""
MOST_FAMILIES = 5
LEAST_SHARE = 0.01
"""Families and operators below this share of a step are not asked about."""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What a step would take if something cost nothing; bounds, never promises."""

    name: str
    label: str
    step_ns: float
    """A step would take at least this long, under the profiler."""
    saving_ns: float
    """And save at most this much."""
    capped: bool
    """The saving is capped by what a step without the profiler has to give."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """How well the replay with nothing changed agrees with what was recorded."""

    residual_ns: int
    """Replayed minus recorded length of the steps."""
    unexplained_ns: int
    """The part of their critical path of which nobody knows what it waited for."""
    share: float
    """Both together as a share of the steps."""

    @property
    def ok(self) -> bool:
        """Whether the replay may answer."""
        return self.share <= MOST_UNEXPLAINED


def replay_steps(
    evidence: Evidence,
    steps: Steps | None,
    chosen: int | Sequence[int] | None = None,
    *,
    transfer_of: Mapping[int, int] | None = None,
) -> Replay | ThreadReplay | None:
    """Make steps ready to be replayed; ``None`` when they cannot be.

    There is nothing to replay without complete steps, and on a device without launch records.

    Args:
        evidence: The host side of the trace.
        steps: Its complete steps.
        chosen: Number of one step, or of successive ones; by default all after warm-up.
        transfer_of: Row of a collective's kernel and the length of its transfer, from all ranks.

    Raises:
        TraceError: A chosen step does not exist, or the chosen ones do not follow each other.
    """
    trace, launches = evidence.trace, evidence.launches
    if steps is None or not len(steps):
        return None
    span = span_of(trace, launches, steps, chosen)
    if span is None:
        return None
    if not launches.clock_offset:
        return thread_replay(evidence, steps, span)
    if not all(launches.clock_ok.values()):
        return None
    graph = build_graph(evidence, steps, span)
    return None if graph is None else prepare(graph, transfer_of)


def critical_path(replay: Replay | ThreadReplay) -> CriticalPath:
    """The chain of work and waits that decides when the steps end; it sums to them exactly."""
    return replay.path() if isinstance(replay, ThreadReplay) else path_of(replay)


def reproduction(replay: Replay | ThreadReplay) -> Reproduction:
    """Replay with nothing changed, and compare with what was recorded."""
    residual = replay.length(NOTHING_CHANGED) - replay.measured
    unexplained = critical_path(replay).unexplained
    share = (abs(residual) + unexplained) / max(replay.measured, 1)
    return Reproduction(residual_ns=residual, unexplained_ns=unexplained, share=share)


def what_if(
    replay: Replay | ThreadReplay, scenario: Scenario, *, record_step_ns: float | None = None
) -> WhatIf:
    """Replay one scenario.

    Args:
        replay: The steps.
        scenario: What is imagined.
        record_step_ns: Step time without the profiler. Host code is slower under the profiler, so
            it cannot save more than such a step has beyond the device's work.
    """
    count = len(replay.numbers)
    saving = replay.saving(scenario) / count
    measured = replay.measured / count
    capped = False
    if record_step_ns is not None and scenario.on_host:
        room = max(record_step_ns - replay.busy / count, 0.0)
        capped, saving = saving > room, min(saving, room)
    return WhatIf(
        name=scenario.name,
        label=scenario.label,
        step_ns=measured - saving,
        saving_ns=saving,
        capped=capped,
    )


def scenarios(
    replay: Replay | ThreadReplay, absent: Collection[str] = (), *, times: float = 2.0
) -> tuple[Scenario, ...]:
    """What is worth asking about these steps.

    Args:
        replay: The steps.
        absent: Causes that the trace cannot show.
        times: How many times faster a kernel family, or an operator, is imagined.
    """
    causes = [without_cause(cause) for cause in CAUSE_LABELS if cause not in absent]
    if isinstance(replay, ThreadReplay):
        kinds = critical_path(replay).by_kind
        asked = [each for each in causes if each.name in kinds or each.name == "input"]
        if "communication" in kinds:
            asked.append(hidden("communication"))
        return (*asked, *_faster(replay.operator_ns(), replay.measured, times))
    asked = [*causes, host_free()]
    asked += [hidden("communication")] if replay.communication.any() else []
    asked += [hidden("memory")] if replay.memory.any() else []
    asked += [without_late_ranks()] if replay.transfer is not None else []
    families = {
        name: ns for name, ns in replay.family_ns().items() if name not in ("communication", "copy")
    }
    return (*asked, *_faster(families, replay.measured, times))


def bounds(
    replay: Replay | ThreadReplay | None,
    absent: Collection[str] = (),
    *,
    record_step_ns: float | None = None,
) -> Mapping[str, float | None] | None:
    """What a step saves at most without each cause; ``None`` where the replay cannot tell."""
    if replay is None or not reproduction(replay).ok:
        return None
    asked = scenarios(replay, absent)
    return bounds_of([what_if(replay, each, record_step_ns=record_step_ns) for each in asked])


def bounds_of(outcomes: Sequence[WhatIf]) -> Mapping[str, float | None]:
    """The savings by name; ``None`` for what was not asked because it was not recorded.

    Besides the causes of idle there are ``host`` (launches and all host code around them, as in a
    graph), ``communication``, ``memory`` and ``late_ranks``, and each asked-for ``family:NAME``.
    """
    found: dict[str, float | None] = dict.fromkeys(
        (*CAUSES, "host", "communication", "memory", "late_ranks")
    )
    return found | {each.name: each.saving_ns for each in outcomes}


def _faster(summed: Mapping[str, int], measured: int, times: float) -> list[Scenario]:
    """The few longest that are worth a question."""
    worth = [name for name, ns in summed.items() if ns >= LEAST_SHARE * measured]
    return [faster_family(name, times) for name in worth[:MOST_FAMILIES]]
