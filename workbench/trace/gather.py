"""Decoded events become columns, a batch at a time."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace import stamps
from workbench.trace.arguments import ArgumentColumns
from workbench.trace.categories import Group, group_of
from workbench.trace.columns import Codes, Column, Lanes
from workbench.trace.lenient import to_float, to_int, to_text
from workbench.trace.schema import DURATIONS, FLOWS, INSTANTS, Family

_MOST_CATEGORIES = 32_000
_MARKS = ("B", "E")
_LABELS = ("process_name", "thread_name", "process_labels")
_MEMORY = ("bytes", "total_allocated", "total_reserved", "address", "device_type", "device_index")


class Categories(Codes):
    """Codes of category names, and the group of argument columns that each one fills."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: NDArray[np.uint8] = np.empty(0, np.uint8)

    def __missing__(self, key: str) -> int:
        if len(self) > _MOST_CATEGORIES:
            return len(self) - 1
        code = self[key] = len(self)
        self.groups = np.append(self.groups, np.uint8(group_of(key)))
        return code


class Batch:
    """Decoded events sorted by what they are, each kind in file order, with their stamps."""

    def __init__(self, events: Sequence[Any], family: Family) -> None:
        self.family = family
        groups: dict[Any, list[Any]] = defaultdict(list)
        for event in events:
            groups[event.__class__].append(event)
        found = {family.phases[struct]: members for struct, members in groups.items()}
        self.counts = {phase: len(members) for phase, members in found.items()}

        def ordered(phases: Iterable[str]) -> list[Any]:
            present = [phase for phase in phases if phase in found]
            if len(present) < 2:
                return found[present[0]] if present else []
            structs = {family.structs[phase] for phase in present}
            return [event for event in events if event.__class__ in structs]

        self.durations, self.marks = ordered(DURATIONS), ordered(_MARKS)
        self.flows, self.instants = ordered(FLOWS), ordered(INSTANTS)
        self.counters, self.metadata = found.get("C", []), found.get("M", [])
        self.ts, self.dur = self._ns(self.durations, "ts"), self._ns(self.durations, "dur")
        self.mark_ts, self.flow_ts = self._ns(self.marks, "ts"), self._ns(self.flows, "ts")
        self.instant_ts = self._ns(self.instants, "ts")
        self.counter_ts = self._ns(self.counters, "ts")

    def _ns(self, events: list[Any], name: str) -> NDArray[np.int64]:
        getter = attrgetter(name)
        if self.family.exact:
            return stamps.from_values(list(map(getter, events)))
        us = np.fromiter(map(getter, events), np.float64, len(events))
        if not stamps.fits_doubles(us):
            raise stamps.NeedsExactStampsError
        return stamps.from_doubles(us)


class Gatherer:
    """Every column of a trace while it is being read."""

    def __init__(self) -> None:
        self.names = Codes()
        self.categories = Categories()
        self.lanes = Lanes()
        self.series = Codes()
        self._flow_names = Codes()
        self.arguments = ArgumentColumns()
        self.rows = 0
        self.phases: dict[str, int] = defaultdict(int)
        self.labels: dict[tuple[str, str, str], str] = {}
        self.durations = _columns("ts dur", "name lane", "category")
        self.marks = _columns("ts row", "lane")
        self.flows = _columns("ts id", "lane", "category phase")
        self.memory = _columns(
            "ts bytes total_allocated total_reserved address", "lane", "device_type device_index"
        )
        self.instants = _columns("ts", "name lane", "category")
        self.counters = _columns("ts", "series lane") | {"value": Column(np.float64)}

    def add(self, events: Sequence[Any], family: Family) -> None:
        """Take decoded events of one family, in file order.

        Raises:
            NeedsExactStampsError: The family rounds these stamps; nothing was taken.
        """
        batch = Batch(events, family)
        for phase, count in batch.counts.items():
            self.phases[phase] += count
        first_row = self.rows
        if batch.durations:
            self._add_durations(batch)
        if batch.marks:
            self._add_marks(batch, first_row)
        if batch.flows:
            self._add_flows(batch)
        if batch.instants:
            self._add_instants(batch)
        for counter, ts in zip(batch.counters, batch.counter_ts.tolist(), strict=True):
            self._add_counter(counter, ts)
        for metadata in batch.metadata:
            self._add_label(metadata)

    def _add_durations(self, batch: Batch) -> None:
        events, columns = batch.durations, self.durations
        categories = self._category_codes(events)
        columns["ts"].extend(batch.ts)
        columns["dur"].extend(batch.dur)
        columns["name"].extend(_codes(self.names, events, "name"))
        columns["category"].extend(categories)
        columns["lane"].extend(self._lane_codes(events))
        groups = self.categories.groups[categories]
        for group in Group:
            chosen = groups == group
            if chosen.any():
                arguments = [event.args for event in compress(events, chosen.tolist())]
                self.arguments.add(arguments, np.flatnonzero(chosen) + self.rows, group)
        self.rows += len(events)

    def _add_marks(self, batch: Batch, first_row: int) -> None:
        begin = batch.family.structs["B"]
        rows = np.full(len(batch.marks), -1)
        opening = np.array([event.__class__ is begin for event in batch.marks])
        in_durations = np.array([event.__class__ is begin for event in batch.durations], bool)
        rows[opening] = np.flatnonzero(in_durations) + first_row
        self.marks["row"].extend(rows)
        self.marks["ts"].extend(batch.mark_ts)
        self.marks["lane"].extend(self._lane_codes(batch.marks))

    def _add_flows(self, batch: Batch) -> None:
        events, columns = batch.flows, self.flows
        numbers = {batch.family.structs[phase]: ord(phase) for phase in FLOWS}
        columns["ts"].extend(batch.flow_ts)
        columns["category"].extend(self._category_codes(events))
        columns["lane"].extend(self._lane_codes(events))
        phases = map(numbers.__getitem__, map(type, events))
        columns["phase"].extend(np.fromiter(phases, np.uint8, len(events)))
        columns["id"].extend(self._flow_ids([event.id for event in events]))

    def _add_instants(self, batch: Batch) -> None:
        events, ts = batch.instants, batch.instant_ts
        is_memory = np.array([event.name == "[memory]" for event in events])
        memory = list(compress(events, is_memory.tolist()))
        others = list(compress(events, (~is_memory).tolist()))
        if memory:
            self.memory["ts"].extend(ts[is_memory])
            self.memory["lane"].extend(self._lane_codes(memory))
            for name in _MEMORY:
                getter = attrgetter(name)
                self.memory[name].extend(_integers([getter(event.args) for event in memory]))
        if others:
            self.instants["ts"].extend(ts[~is_memory])
            self.instants["name"].extend(_codes(self.names, others, "name"))
            self.instants["category"].extend(self._category_codes(others))
            self.instants["lane"].extend(self._lane_codes(others))

    def _add_counter(self, event: Any, ts: int) -> None:
        lane = self.lanes[(event.pid, event.tid)]
        label = event.name if event.id is None else f"{event.name}[{to_text(event.id)}]"
        for key, value in event.args.items():
            series = label if len(event.args) == 1 else f"{label}: {to_text(key)}"
            self.counters["ts"].extend(np.array([ts]))
            self.counters["series"].extend(np.array([self.series[series]]))
            self.counters["value"].extend(np.array([to_float(value)]))
            self.counters["lane"].extend(np.array([lane]))

    def _add_label(self, event: Any) -> None:
        if event.name in _LABELS:
            text = event.args.labels if event.name == "process_labels" else event.args.name
            if text is not None:
                place = to_text(event.pid), to_text(event.tid)
                self.labels[(event.name, *place)] = to_text(text)

    def _category_codes(self, events: list[Any]) -> NDArray[np.int32]:
        return _codes(self.categories, events, "cat")

    def _lane_codes(self, events: list[Any]) -> NDArray[np.int32]:
        places = [(event.pid, event.tid) for event in events]
        return np.fromiter(map(self.lanes.__getitem__, places), np.int32, len(events))

    def _flow_ids(self, ids: list[Any]) -> NDArray[np.int64]:
        try:
            return np.array(ids, np.int64)
        except (OverflowError, ValueError, TypeError):
            numbers = [to_int(ident) for ident in ids]
        for index, number in enumerate(numbers):
            if number == -1:
                numbers[index] = -2 - self._flow_names[to_text(ids[index])]
        return np.array(numbers, np.int64)


def _columns(int64: str, int32: str, int16: str = "") -> dict[str, Column]:
    columns = {name: Column(np.int64) for name in int64.split()}
    columns |= {name: Column(np.int32) for name in int32.split()}
    return columns | {name: Column(np.int16) for name in int16.split()}


def _codes(codes: Codes, events: list[Any], name: str) -> NDArray[np.int32]:
    values = map(codes.__getitem__, map(attrgetter(name), events))
    return np.fromiter(values, np.int32, len(events))


def _integers(values: list[Any]) -> NDArray[np.int64]:
    try:
        return np.fromiter(values, np.int64, len(values))
    except (OverflowError, ValueError, TypeError):
        return np.array([to_int(value) for value in values], np.int64)
