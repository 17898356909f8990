"""The steps that are replayed, and where on the host's clock they begin and end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import device_indices
from workbench.analysis.launches import Launches
from workbench.analysis.steps import NOTHING, Steps, completions
from workbench.analysis.window import window
from workbench.errors import TraceError
from workbench.trace.table import Trace

MOST_LAUNCHES = 100_000
"""Of more launches than this only the last whole steps are replayed together."""

Times = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Span:
    """Successive complete steps, from the completion before them to that of the last one.

    All times are on the host's clock, in ns. Where the host runs ahead, its part of the steps
    begins at ``host_start``, often long before ``start``.
    """

    first: int
    """Index of the first step among the complete ones."""
    numbers: tuple[int, ...]
    start: int
    end: int
    host_start: int
    loop_start: int
    """Where the first step begins on the loop's thread."""
    host_end: int

    @property
    def length(self) -> int:
        """Length of all the steps together."""
        return self.end - self.start

    @property
    def step_ns(self) -> float:
        """Mean time of a step."""
        return self.length / len(self.numbers)


def completion_times(trace: Trace, launches: Launches, steps: Steps) -> Times:
    """When everything launched up to each step was done; the host's end where nothing was."""
    done = np.full(len(steps), NOTHING)
    for device in device_indices(trace):
        own = completions(trace, launches, device, steps.start, steps.end)
        offset = launches.clock_offset.get(device, 0)
        np.maximum(done, np.where(own > NOTHING, own + offset, NOTHING), out=done)
    return np.maximum.accumulate(np.where(done > NOTHING, done, steps.end))


def span_of(
    trace: Trace, launches: Launches, steps: Steps, chosen: int | Sequence[int] | None = None
) -> Span | None:
    """The steps to replay; ``None`` when none of them has a time.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        steps: The complete steps.
        chosen: Number of one step, or of successive ones; by default all after warm-up, and of a
            long trace the last of them.

    Raises:
        TraceError: There is no such step, or the chosen ones do not follow each other.
    """
    if not len(steps):
        return None
    first, last = (
        _steady(trace, launches, steps) if chosen is None else _numbered(trace, steps, chosen)
    )
    done = completion_times(trace, launches, steps)
    start = int(done[first - 1]) if first else _window_start(trace, launches, steps)
    end = int(done[last])
    if end <= start:
        return None
    return Span(
        first=first,
        numbers=steps.numbers[first : last + 1],
        start=start,
        end=end,
        host_start=min(int(steps.start[first]), start),
        loop_start=int(steps.start[first]),
        host_end=int(steps.end[last]),
    )


def median_step(steps: Steps) -> int | None:
    """Number of the step after warm-up whose time is nearest to the median of them."""
    times = steps.time_ns[steps.warmup :]
    if not len(times):
        return steps.numbers[-1] if len(steps) else None
    nearest = int(np.argmin(np.abs(times - np.median(times))))
    return steps.numbers[len(steps) - len(times) + nearest]


def _steady(trace: Trace, launches: Launches, steps: Steps) -> tuple[int, int]:
    last = len(steps) - 1
    first = min(steps.first_steady, last)
    calls = launches.launch[launches.launch >= 0]
    count = np.bincount(
        steps.step_of(trace.events.ts[calls]).clip(-1) + 1, minlength=len(steps) + 1
    )[1:]
    while first < last and count[first : last + 1].sum() > MOST_LAUNCHES:
        first += 1
    return first, last


def _numbered(trace: Trace, steps: Steps, chosen: int | Sequence[int]) -> tuple[int, int]:
    wanted = (chosen,) if isinstance(chosen, int) else tuple(chosen)
    known = {number: index for index, number in enumerate(steps.numbers)}
    if not wanted or any(number not in known for number in wanted):
        raise TraceError(
            f"{trace.source} has no complete step {', '.join(map(str, wanted)) or '(none named)'}: "
            f"it has {steps.numbers[0]} to {steps.numbers[-1]}."
        )
    index = sorted(known[number] for number in wanted)
    if index != list(range(index[0], index[-1] + 1)):
        raise TraceError(f"steps {wanted} do not follow each other: choose successive ones.")
    return index[0], index[-1]


def _window_start(trace: Trace, launches: Launches, steps: Steps) -> int:
    """Where the first step begins on its devices, the latest of them; without one, on the host."""
    starts = []
    for device in device_indices(trace):
        found = window(trace, device, steps, launches)
        if found is not None:
            starts.append(found.start + launches.clock_offset.get(device, 0))
    return max(starts, default=int(steps.start[0]))
