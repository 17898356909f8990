"""How long the training loop waited for its input.

The wait is measured around the loader's ``__next__`` on the loop's thread; what worker processes
did meanwhile is not in the trace. A trace without any loader record gives ``None``: not measured.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.intervals import clip, total, union
from workbench.analysis.ranges import Range
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

INPUT_PATTERNS: tuple[tuple[str, str], ...] = (
    ("the loader of torch", r"enumerate\(DataLoader\)#.*__next__"),
    ("our own loops", r"workbench\.input"),
    ("Lightning's loops", r"\[.+\]\.\w*(dataloader|train|val|validation|test|predict)_next"),
    (
        "ranges that users and torchrec name so",
        r"(#+ *)?(load|next|get|fetch|read)_?(data|batch|input)( *#+)?"
        r"|(#+ *)?(data_?load(ing|er)?|input)( *#+)?",
    ),
)
"""What a range of this name waits for, and the regular expression on its whole name."""

LEAST_WORK_SHARE = 0.1
"""A call delivered no batch when less than this share of a batch's usual operators followed."""

_ANY = re.compile("|".join(f"(?:{pattern})" for _, pattern in INPUT_PATTERNS))
_KINDS = (Kind.ANNOTATION, Kind.OPERATOR, Kind.OTHER)


class Waits(NamedTuple):
    """The waits that touch the window, as columns; a wait may reach beyond it."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    step: NDArray[np.int64]
    """Number of the step that the wait began in, or -1."""
    batch: NDArray[np.bool_]
    """False for the call that only said that the data has ended."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InputWait:
    """Waiting for input inside a window."""

    wait_ns: int
    batches: int
    """Calls that ended in the window and delivered a batch: the divisor of a mean per batch."""
    waits: Waits


@lru_cache(maxsize=65536)
def is_input(name: str) -> bool:
    """Whether a host range of this name is the loop waiting for its input."""
    return _ANY.fullmatch(name) is not None


def input_rows(trace: Trace) -> NDArray[np.intp]:
    """Rows of every input range of the host, nested ones included, on any thread."""
    events = trace.events
    named = np.isin(events.name, trace.name_codes(is_input))
    return np.flatnonzero(named & events.of_kind(*_KINDS))


def waiting_rows(trace: Trace, steps: Steps | None) -> NDArray[np.intp]:
    """Rows of the waits of the thread that waits: its outermost ranges, of the whole trace."""
    rows = input_rows(trace)
    if not len(rows):
        return rows
    lane = _waiting_lane(trace, rows, steps)
    return _outermost(trace, rows[trace.events.lane[rows] == lane])


def input_wait(trace: Trace, window: Range, steps: Steps | None) -> InputWait | None:
    """Waiting inside a window that is told by the host's clock; ``None`` without loader records."""
    rows = waiting_rows(trace, steps)
    if not len(rows):
        return None
    events = trace.events
    lane = int(events.lane[rows[0]])
    start, end = events.ts[rows], events.end[rows]
    delivered = _delivered(trace, lane, start, end, steps)
    near = (start < window.end) & (end > window.start)
    done = (end > window.start) & (end <= window.end)
    numbers = np.array(steps.numbers if steps else (), np.int64)
    index = steps.step_of(start[near]) if steps else np.full(int(near.sum()), -1, np.int64)
    number = np.where(index >= 0, numbers[index], -1) if len(numbers) else index
    return InputWait(
        wait_ns=total(clip(union(start, end), window.start, window.end)),
        batches=int((delivered & done).sum()),
        waits=Waits(start[near], end[near], number, delivered[near]),
    )


def _waiting_lane(trace: Trace, rows: NDArray[np.intp], steps: Steps | None) -> int:
    """The loop's thread where it waits at all, else the thread that waits longest."""
    events = trace.events
    if steps is not None and (events.lane[rows] == steps.lane).any():
        return steps.lane
    time = np.bincount(events.lane[rows], weights=events.dur[rows].astype(float))
    return int(time.argmax())


def _outermost(trace: Trace, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The ranges that lie in no other one: a wait of ours may hold one of torch."""
    reach = np.maximum.accumulate(trace.events.end[rows])
    first = np.ones(len(rows), bool)
    first[1:] = trace.events.end[rows][1:] > reach[:-1]
    return rows[first]


def _delivered(
    trace: Trace,
    lane: int,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    steps: Steps | None,
) -> NDArray[np.bool_]:
    """Per call, whether a batch came of it: a step ended or operators ran before the next call."""
    events = trace.events
    on_lane = (events.lane == lane) & (events.kind == Kind.OPERATOR)
    on_lane &= ~np.isin(events.name, trace.name_codes(is_input))
    operators = events.ts[on_lane]
    following = np.append(start[1:], np.iinfo(np.int64).max)
    work = np.searchsorted(operators, following) - np.searchsorted(operators, end)
    usual = np.median(work[work > 0]) if (work > 0).any() else 0.0
    if usual == 0 and (steps is None or not len(steps)):
        return np.ones(len(start), bool)
    delivered = np.asarray(work > LEAST_WORK_SHARE * usual, bool)
    if steps is not None and len(steps):
        ended = np.searchsorted(steps.end, following, "right")
        ended -= np.searchsorted(steps.end, end, "right")
        delivered |= ended > 0
    return delivered
