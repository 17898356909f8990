"""From a trace written by hand to its replay, in microseconds."""

from collections.abc import Sequence

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.evidence import gather_evidence
from workbench.analysis.launches import join_launches
from workbench.analysis.replay.answers import critical_path, replay_steps, reproduction, what_if
from workbench.analysis.replay.replay import Replay
from workbench.analysis.replay.scenario import Scenario, without_cause
from workbench.analysis.replay.single_thread import ThreadReplay
from workbench.analysis.steps import find_steps


def replayed(
    made: Kineto, chosen: int | Sequence[int] | None = None
) -> Replay | ThreadReplay | None:
    """The steps of a trace, ready to be replayed."""
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    return replay_steps(gather_evidence(trace, launches, steps), steps, chosen)


def on_device(made: Kineto, chosen: int | Sequence[int] | None = None) -> Replay:
    """The same of a trace with a device; that it reproduces the recording is checked on the way."""
    found = replayed(made, chosen)
    assert isinstance(found, Replay)
    assert reproduction(found).residual_ns == 0, "unchanged, the replay must be exact"
    return found


def saving_us(replay: Replay | ThreadReplay, scenario: Scenario | str) -> float:
    """What a step saves at most."""
    asked = without_cause(scenario) if isinstance(scenario, str) else scenario
    return what_if(replay, asked).saving_ns / US


def path_us(replay: Replay | ThreadReplay) -> dict[str, float]:
    """The critical path by kind; that it has no gap and sums to the steps is checked."""
    path = critical_path(replay)
    assert (path.start[1:] == path.end[:-1]).all()
    assert path.length == replay.measured == sum(path.by_kind.values())
    return {kind: ns / US for kind, ns in path.by_kind.items()}
