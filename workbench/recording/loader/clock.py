"""From CLOCK_MONOTONIC, which all processes share, to the clock of Kineto's trace.

Each wait for a batch is a range in the trace and was timed by us just outside it, so the offset of
the two clocks lies between two bounds; all waits of the window together narrow it to microseconds.
"""

import mmap
import re
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.recording.loader.probe import Wait

_RANGE = re.compile(
    rb'"cat":\s*"user_annotation",\s*"name":\s*"workbench\.input".{0,400}?'
    rb'"ts":\s*(-?[\d.]+),\s*"dur":\s*([\d.]+)',
    re.DOTALL,
)
_BASE = re.compile(rb'"baseTimeNanoseconds":\s*(\d+)')
_FAR_NS = 50_000_000
"""A range further than this from every wait of ours is not one of them."""


@dataclass(frozen=True, kw_only=True)
class Offset:
    """What to add to CLOCK_MONOTONIC for the trace's Unix time, and how far off it may be."""

    ns: int
    error_ns: int
    source: str
    """``trace``: from ranges that both clocks saw. ``system``: from the two clocks of the system,
    which Kineto converts to by itself."""


def system_offset() -> Offset:
    """CLOCK_REALTIME against CLOCK_MONOTONIC, the tightest of a few tries."""
    found = []
    for _ in range(9):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        found.append((after - before, real - (before + after) // 2))
    width, offset = min(found)
    return Offset(ns=offset, error_ns=max(width // 2, 1), source="system")


def ranges_in(trace: Path) -> list[tuple[int, int]]:
    """Start and end of every wait for input in an exported trace, in Unix nanoseconds."""
    if trace.stat().st_size == 0:
        return []
    with trace.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        base = _BASE.search(text)
        start = int(base[1]) if base else 0
        found = []
        for match in _RANGE.finditer(text):
            began = start + _ns(match[1])
            found.append((began, began + _ns(match[2])))
    return found


def measured_offset(
    ranges: Sequence[tuple[int, int]], waits: Sequence[Wait], guess: Offset
) -> Offset:
    """The offset that puts every range inside the wait around it; ``guess`` where none does."""
    starts = [wait.start_ns for wait in waits]
    least, most = guess.ns - _FAR_NS, guess.ns + _FAR_NS
    seen = 0
    for began, ended in ranges:
        middle = (began + ended) // 2 - guess.ns
        index = bisect_right(starts, middle) - 1
        if index < 0 or waits[index].end_ns < middle:
            continue
        least = max(least, ended - waits[index].end_ns)
        most = min(most, began - starts[index])
        seen += 1
    if not seen:
        return guess
    # Bounds that cross tell how far the clocks drifted against each other meanwhile.
    return Offset(ns=(least + most) // 2, error_ns=max(abs(most - least) // 2, 1), source="trace")


def _ns(microseconds: bytes) -> int:
    whole, _, part = microseconds.partition(b".")
    return int(whole) * 1000 + int(part.ljust(3, b"0")[:3] or 0)
