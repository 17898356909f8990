"""A hand-written gap in one line: what ended it, and the causes in microseconds."""

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.idle import Idle, attribute_idle
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps
from workbench.analysis.window import recording


def explained(made: Kineto, device: int = 0) -> Idle:
    """The idle time of the recording of a trace written by hand."""
    trace = columns(made)
    launches = join_launches(trace)
    span = recording(trace, device)
    assert span is not None
    return attribute_idle(trace, device, span, find_steps(trace, launches), launches)


def causes(idle: Idle) -> dict[str, float]:
    """The causes that are not zero, in microseconds; their sum is checked on the way."""
    known = {cause: ns for cause, ns in idle.by_cause.items() if ns is not None}
    assert sum(known.values()) == idle.total, "causes must sum to the idle time"
    return {cause: ns / US for cause, ns in known.items() if ns}


def gap(*, call: tuple[float, float] = (180, 10), until: float = 200) -> Kineto:
    """A device that works in [50, 100) and from ``until`` on; ``call`` launches the second kernel.

    The first kernel is launched at 40, so that the clocks agree.
    """
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.launched("second", call=call, kernel=(until, 10), correlation=2)
    return made
