"""Decoded events sorted by what they are."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace import stamps
from workbench.trace.columns import packed
from workbench.trace.schema import DURATIONS, FLOWS, INSTANTS, Family

_MARKS = ("B", "E")


class Batch:
    """Some events of one family: each kind in file order, with their stamps in nanoseconds.

    Raises:
        NeedsExactStampsError: The family rounds these stamps.
    """

    def __init__(self, events: Sequence[Any], family: Family) -> None:
        self.family = family
        self._events = events
        self._of = _by_phase(events, family)
        self.counts = {phase: len(members) for phase, members in self._of.items()}
        self.durations, self.marks = self._ordered(DURATIONS), self._ordered(_MARKS)
        self.instants = self._ordered(INSTANTS)
        self.flows = [(phase, self._of[phase]) for phase in FLOWS if phase in self._of]
        self.counters, self.metadata = self._of.get("C", []), self._of.get("M", [])
        self.ts = self._ns([event.ts for event in self.durations])
        self.dur = stamps.from_lengths([event.dur for event in self.durations])
        self.mark_ts = self._ns([event.ts for event in self.marks])
        self.instant_ts = self._ns([event.ts for event in self.instants])
        self.counter_ts = self._ns([event.ts for event in self.counters])
        self.flow_ts = [self._ns([event.ts for event in flows]) for _, flows in self.flows]

    def _ordered(self, phases: Iterable[str]) -> Sequence[Any]:
        """The events of several phases, in file order."""
        found = [phase for phase in phases if phase in self._of]
        if len(found) < 2:
            return self._of[found[0]] if found else []
        structs = {self.family.structs[phase] for phase in found}
        return [event for event in self._events if event.__class__ in structs]

    def _ns(self, values: list[Any]) -> NDArray[np.int64]:
        if not values:
            return _NO_STAMPS
        if self.family.rounds:
            us = packed(values, "d")
            if not stamps.fits_doubles(us):
                raise stamps.NeedsExactStampsError
            return stamps.from_doubles(us)
        return stamps.from_values(values)


_NO_STAMPS = np.empty(0, np.int64)


def _by_phase(events: Sequence[Any], family: Family) -> dict[str, list[Any]]:
    found: dict[Any, list[Any]] = {kind: [] for kind in family.phases}
    append = {kind: members.append for kind, members in found.items()}
    for event in events:
        append[event.__class__](event)
    return {family.phases[kind]: members for kind, members in found.items() if members}


def chosen(events: Sequence[Any], places: NDArray[np.intp]) -> Sequence[Any]:
    """The events at some places, which rise."""
    if len(places) == len(events):
        return events
    if len(places) < 2:
        return [events[place] for place in places.tolist()]
    return itemgetter(*places.tolist())(events)  # type: ignore[no-any-return]
