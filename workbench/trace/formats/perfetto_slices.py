"""Begin and end packets become durations, in whichever order a writer puts them.

Writers that trace as they go put their packets in the order of time: an end closes the innermost
begin of its track. torch writes all begins of a group and then all ends in the same order; pairing
those as a stack would mix up neighbours that touch. A writer whose time runs backwards is one that
groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Slice = tuple[int, int, Any]
"""Start and length in nanoseconds, and what it is."""


@dataclass(kw_only=True, slots=True)
class _Run:
    """Begins without an end between them, and the ends that follow."""

    begins: list[tuple[int, int, Any]] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)

    def in_time(self) -> bool:
        moments = [mark[0] for mark in self.begins] + [mark[0] for mark in self.ends]
        return all(one <= other for one, other in pairwise(moments))

    def paired(self) -> bool:
        """Whether each end fits the begin in the same place."""
        return len(self.begins) == len(self.ends) and all(
            begun[1] == ended[1] and begun[0] <= ended[0]
            for begun, ended in zip(self.begins, self.ends, strict=True)
        )


class Slices:
    """The marks of one writer."""

    def __init__(self) -> None:
        self._runs: list[_Run] = [_Run()]
        self.unmatched = 0
        """Begins that never ended, and ends without a begin; known once all slices were given."""

    def begin(self, at: int, track: int, what: Any) -> None:
        """Something began on a track."""
        if self._runs[-1].ends:
            self._runs.append(_Run())
        self._runs[-1].begins.append((at, track, what))

    def end(self, at: int, track: int) -> None:
        """The last thing that is open on a track ended."""
        self._runs[-1].ends.append((at, track))

    def slices(self) -> Iterator[Slice]:
        """Every slice that began and ended."""
        paired = [run.paired() for run in self._runs]
        groups = any(ok and not run.in_time() for ok, run in zip(paired, self._runs, strict=True))
        waiting: dict[int, list[tuple[int, Any]]] = {}
        for ok, run in zip(paired, self._runs, strict=True):
            if ok and groups:
                for (start, _, what), (stop, _) in zip(run.begins, run.ends, strict=True):
                    yield start, stop - start, what
                continue
            for start, track, what in run.begins:
                waiting.setdefault(track, []).append((start, what))
            for stop, track in run.ends:
                stack = waiting.get(track)
                if stack:
                    start, what = stack.pop()
                    yield start, stop - start, what
                else:
                    self.unmatched += 1
        self.unmatched += sum(map(len, waiting.values()))
