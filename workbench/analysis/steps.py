"""The steps of the training loop: which are whole, and how long each took.

A step's time runs from completion to completion: the last end of the device work launched up to
step N minus the same of step N-1. The length of ``ProfilerStep#N`` itself is only the host's time:
the host runs ahead of the device. Without a device both are the same.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.compiling import compiling_spans, leading_compilations
from workbench.analysis.devices import device_indices, work_rows
from workbench.analysis.launches import Launches
from workbench.analysis.missing_kernels import launch_calls, launches_without_kernel
from workbench.analysis.nesting import distinct
from workbench.trace.table import DEVICE_WORK, Kind, Trace

STEP_NAME = re.compile(r"ProfilerStep\s*#\s*(\d{1,18})$")
CUT_BELOW = 0.5
"""A last step with less than this share of the work of the least of the others is a torso."""

NOTHING = np.int64(-(2**62))
"""The completion of a step that launched no work on a device."""

Times = NDArray[np.int64]
_NEVER_A_STEP = (*DEVICE_WORK, Kind.DEVICE_ANNOTATION, Kind.PYTHON)


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """The complete steps of a trace, in time order."""

    source: str
    """``profiler_step``, ``user``, ``inferred`` (from what repeats) or ``none``."""
    numbers: tuple[int, ...]
    start: Times
    """Host ranges of the complete steps."""
    end: Times
    lane: int
    """The lane of the thread that runs the loop."""
    dropped: int
    """Steps left out because the capture ended inside them."""
    host_ns: Times
    time_ns: Times
    """Completion to completion: one fewer than the steps on a device, equal to ``host_ns`` without
    one, empty when a device worked but was not recorded."""
    warmup: int
    """How many of the first step times belong to warm-up."""
    elsewhere: int = 0
    """Steps of other recordings in the same file, which are left out."""
    since: int | None = None
    """Where another recording came first: the host's instant at which its last step ended."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def first_steady(self) -> int:
        """Place of the first step that counts: it has a time, and warm-up is over."""
        return len(self) - len(self.time_ns) + self.warmup

    @property
    def steady(self) -> NDArray[np.bool_]:
        """Whether each step counts."""
        return np.arange(len(self)) >= self.first_steady

    def step_of(self, at: Times) -> NDArray[np.int64]:
        """For each host instant, the index of the step that holds it, or -1."""
        index = np.searchsorted(self.start, at, "right") - 1
        inside = (index >= 0) & (at < self.end[np.maximum(index, 0)])
        return np.where(inside, index, -1).astype(np.int64)


def step_codes(trace: Trace) -> NDArray[np.int32]:
    """Codes of the names that mark a step."""
    return trace.name_codes(lambda name: STEP_NAME.match(name) is not None)


def find_steps(trace: Trace, launches: Launches) -> Steps | None:
    """The complete steps that ``ProfilerStep#N`` ranges of the host mark; ``None`` without any."""
    rows, numbers = _step_rows(trace)
    if not len(rows):
        return None
    events = trace.events
    lane = int(events.lane[rows[0]])
    longest = _longest_recording(trace, rows, numbers)
    since = int(events.end[rows[longest.start - 1]]) if longest.start else None
    elsewhere = len(rows) - (longest.stop - longest.start)
    rows, numbers = rows[longest], numbers[longest]
    cut = _marked_partial(trace) == int(numbers[-1]) or _last_is_cut(trace, launches, rows)
    whole = len(rows) - int(cut)
    rows, dropped = rows[:whole], len(rows) - whole
    start, end = events.ts[rows], events.ts[rows] + events.dur[rows]
    host = events.dur[rows].astype(np.int64)
    time = step_times(trace, launches, start, end)
    return Steps(
        source="profiler_step",
        numbers=tuple(int(number) for number in numbers[:whole]),
        start=start,
        end=end,
        lane=lane,
        dropped=dropped,
        host_ns=host,
        time_ns=time,
        warmup=warmup_of(trace, time, start, end),
        elsewhere=elsewhere,
        since=since,
    )


def _longest_recording(trace: Trace, rows: NDArray[np.intp], numbers: NDArray[np.int64]) -> slice:
    """The steps of one recording, where a file holds several: the most, of as many the first.

    Another one begins where the numbers start again behind a pause longer than the steps, or go on
    further ahead behind one in which the thread recorded nothing: a schedule had its wait there.
    """
    events = trace.events
    pause = events.ts[rows[1:]] - events.end[rows[:-1]]
    apart = pause > np.median(events.dur[rows])
    ahead = np.diff(numbers) > 1
    if (ahead & apart).any():
        mine = events.ts[events.lane == events.lane[rows[0]]]
        ahead &= np.searchsorted(mine, events.end[rows[:-1]]) == np.searchsorted(
            mine, events.ts[rows[1:]]
        )
    again = ((np.diff(numbers) <= 0) | ahead) & apart
    bounds = np.concatenate(([0], np.flatnonzero(again) + 1, [len(rows)]))
    most = int(np.argmax(np.diff(bounds)))
    return slice(int(bounds[most]), int(bounds[most + 1]))


def _marked_partial(trace: Trace) -> int | None:
    """The step that our own recording says it was stopped in."""
    ours = trace.header.get("workbench")
    marked = ours.get("partial_step") if isinstance(ours, dict) else None
    return marked if isinstance(marked, int) else None


def _step_rows(trace: Trace) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Rows of the step ranges on the thread that has most of them, and their numbers."""
    events = trace.events
    number_of = {
        code: int(match.group(1))
        for code, name in enumerate(trace.names)
        if (match := STEP_NAME.match(name))
    }
    codes = np.fromiter(number_of, np.int32, len(number_of))
    rows = np.flatnonzero(np.isin(events.name, codes) & ~events.of_kind(*_NEVER_A_STEP))
    if not len(rows):
        return rows, np.empty(0, np.int64)
    lanes, count = np.unique(events.lane[rows], return_counts=True)
    rows = rows[events.lane[rows] == lanes[np.argmax(count)]]
    end = events.ts[rows] + events.dur[rows]
    reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]))
    rows = rows[end > reach]
    return rows, np.array([number_of[int(code)] for code in events.name[rows]], np.int64)


def _last_is_cut(trace: Trace, launches: Launches, rows: NDArray[np.intp]) -> bool:
    """Whether the capture ended inside the last step.

    The range of a step closes when the profiler stops, so its length says nothing. A torso shows
    by what it lacks: most of the work of the least of the other steps, most of the names that
    occur in every one of them, the optimizer's step that all of several have, or the kernels of
    its launches while every launch before it has one.
    """
    if len(rows) < 2:
        return False
    events = trace.events
    start, end = events.ts[rows], events.ts[rows] + events.dur[rows]
    calls = distinct(launches.launch[launches.launch >= 0])
    inside = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)
    inside &= events.lane == events.lane[rows[0]]
    inside[rows] = False
    named = np.flatnonzero(inside)
    operators = named[events.kind[named] == Kind.OPERATOR]
    work = _count_inside(events.ts[calls if len(calls) else operators], start, end)
    lost = _count_inside(events.ts[launches_without_kernel(trace, launches)], start, end)
    return bool(
        work[-1] < CUT_BELOW * work[:-1].min()
        or _lacks_what_others_have(trace, named, start, end)
        or (lost[-1] > 0 and not lost[:-1].any() and len(calls) > 0)
    )


def _lacks_what_others_have(trace: Trace, rows: NDArray[np.intp], start: Times, end: Times) -> bool:
    """Whether the last step lacks most names of every other step, or their optimizer's step."""
    index = np.searchsorted(start, trace.events.ts[rows], "right") - 1
    held = (index >= 0) & (trace.events.ts[rows] < end[np.maximum(index, 0)])
    last = len(start) - 1
    pairs = np.unique(trace.events.name[rows[held]].astype(np.int64) * len(start) + index[held])
    of_name, of_step = np.divmod(pairs, len(start))
    names, count = np.unique(of_name[of_step < last], return_counts=True)
    common = names[count == last]
    missing = np.setdiff1d(common, of_name[of_step == last])
    if len(missing) > (1 - CUT_BELOW) * len(common):
        return True
    return len(start) > 2 and any(
        trace.names[int(code)].startswith("Optimizer.step#") for code in missing
    )


def _count_inside(at: Times, start: Times, end: Times) -> NDArray[np.int64]:
    """How many of the sorted instants lie in each range."""
    at = np.sort(at)
    return np.asarray(np.searchsorted(at, end) - np.searchsorted(at, start), np.int64)


def step_times(trace: Trace, launches: Launches, start: Times, end: Times) -> Times:
    """Completion to completion of consecutive host ranges; ``Steps.time_ns`` says which."""
    devices = device_indices(trace)
    if not devices and not len(launch_calls(trace)):
        return (end - start).astype(np.int64)
    done = np.full(len(start), NOTHING)
    for device in devices:
        own = completions(trace, launches, device, start, end)
        host = np.where(own > NOTHING, own + launches.clock_offset[device], NOTHING)
        np.maximum(done, host, out=done)
    recorded = done > NOTHING
    if not recorded.any():
        return np.empty(0, np.int64)
    # A step that launched nothing is complete when the host is, and never before the last one.
    done = np.maximum.accumulate(np.where(recorded, done, end))
    return np.diff(done)


def completions(trace: Trace, launches: Launches, device: int, start: Times, end: Times) -> Times:
    """Per host range, the last end of the work launched in it, on the device's own clock.

    ``NOTHING`` stands where nothing was launched.
    """
    done = np.full(len(start), NOTHING)
    rows = work_rows(trace, device)
    rows = rows[launches.launch[rows] >= 0]
    if not len(rows) or not len(start):
        return done
    called = trace.events.ts[launches.launch[rows]]
    index = np.searchsorted(start, called, "right") - 1
    inside = (index >= 0) & (called < end[np.maximum(index, 0)])
    rows = rows[inside]
    np.maximum.at(done, index[inside], trace.events.ts[rows] + trace.events.dur[rows])
    return done


def warmup_of(trace: Trace, time: Times, start: Times, end: Times) -> int:
    """How many of the first step times belong to warm-up: they are others, or compile.

    Args:
        trace: The event table.
        time: The step times, of the last of the steps.
        start: Starts of the steps' host ranges.
        end: And their ends.
    """
    from workbench.statistics.warmup import warmup_length

    compiling = leading_compilations(compiling_spans(trace), start, end)
    untimed = len(start) - len(time)
    return min(max(warmup_length(time.tolist()), compiling - untimed), len(time))
