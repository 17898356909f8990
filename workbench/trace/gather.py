"""Decoded events become columns, a batch at a time."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, compress, pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace import stamps
from workbench.trace.arguments import ArgumentColumns, integers
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

    def __getitem__(self, key: Any) -> int:
        code = self.table.get(key)
        if code is None:
            code = self.table[key] = min(len(self.table), _MOST_CATEGORIES)
            self.groups = np.append(self.groups, np.uint8(group_of(key)))
        return code


class Batch:
    """Decoded events sorted by what they are, each kind in file order, with their stamps."""

    def __init__(self, events: Sequence[Any], family: Family) -> None:
        self.family = family
        self._events = events
        present = set(map(type, events))
        self._of = {family.phases[struct]: self._only(struct, present) for struct in present}
        self.counts = {phase: len(members) for phase, members in self._of.items()}
        self.durations, self.marks = self._ordered(DURATIONS), self._ordered(_MARKS)
        self.instants = self._ordered(INSTANTS)
        self.flows = [(phase, self._of[phase]) for phase in FLOWS if phase in self._of]
        self.counters, self.metadata = self._of.get("C", []), self._of.get("M", [])
        moments = [
            [event.ts for event in self.durations],
            [event.dur for event in self.durations],
            [event.ts for event in self.marks],
            [event.ts for event in self.instants],
            [event.ts for event in self.counters],
            *([event.ts for event in flows] for _, flows in self.flows),
        ]
        ns = self._ns(list(chain.from_iterable(moments)))
        ends = list(accumulate(map(len, moments), initial=0))
        parts = [ns[start:end] for start, end in pairwise(ends)]
        self.ts, self.dur, self.mark_ts, self.instant_ts, self.counter_ts = parts[:5]
        self.flow_ts = parts[5:]

    def _only(self, struct: Any, present: set[Any]) -> Sequence[Any]:
        if len(present) == 1:
            return self._events
        return [event for event in self._events if event.__class__ is struct]

    def _ordered(self, phases: Iterable[str]) -> Sequence[Any]:
        """The events of several phases, in file order."""
        found = [phase for phase in phases if phase in self._of]
        if len(found) < 2:
            return self._of[found[0]] if found else []
        structs = {self.family.structs[phase] for phase in found}
        return [event for event in self._events if event.__class__ in structs]

    def _ns(self, values: list[Any]) -> NDArray[np.int64]:
        if self.family.exact:
            return stamps.from_values(values)
        us = np.fromiter(values, np.float64, len(values))
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
        self.flows = _columns("ts id", "lane", "category") | {"phase": Column(np.uint8)}
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
        for (phase, flows), ts in zip(batch.flows, batch.flow_ts, strict=True):
            self._add_flows(phase, flows, ts)
        if batch.instants:
            self._add_instants(batch)
        for counter, ts in zip(batch.counters, batch.counter_ts.tolist(), strict=True):
            self._add_counter(counter, ts)
        for metadata in batch.metadata:
            self._add_label(metadata)

    def expect(self, share: float) -> None:
        """Make room for the whole file when a share of it is read.

        Growing by copying would leave holes in memory, and room costs nothing until it is used.
        """
        arguments = self.arguments
        moments = (self.durations, self.flows, self.memory, self.instants)
        tables = (*moments, arguments.numbers, arguments.texts, arguments.launch)
        for table in tables:
            for column in table.values():
                column.expected = max(column.expected, int(1.05 * len(column) / share))

    def _add_durations(self, batch: Batch) -> None:
        events, columns = batch.durations, self.durations
        categories = self._category_codes(events)
        columns["ts"].extend(batch.ts)
        columns["dur"].extend(batch.dur)
        columns["name"].extend(self._name_codes(events))
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

    def _add_flows(self, phase: str, events: Sequence[Any], ts: NDArray[np.int64]) -> None:
        columns = self.flows
        columns["ts"].extend(ts)
        columns["category"].extend(self._category_codes(events))
        columns["lane"].extend(self._lane_codes(events))
        columns["phase"].extend(np.full(len(events), ord(phase)))
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
                values = [getter(event.args) for event in memory]
                self.memory[name].extend(integers(values, self.memory[name].dtype))
        if others:
            self.instants["ts"].extend(ts[~is_memory])
            self.instants["name"].extend(self._name_codes(others))
            self.instants["category"].extend(self._category_codes(others))
            self.instants["lane"].extend(self._lane_codes(others))

    def _add_counter(self, event: Any, ts: int) -> None:
        lane = int(self._lane_codes([event])[0])
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

    def _name_codes(self, events: Sequence[Any]) -> NDArray[np.int32]:
        table = self.names.table
        try:
            codes = [table[event.name] for event in events]
        except KeyError:
            self.names.learn([event.name for event in events])
            codes = [table[event.name] for event in events]
        return np.fromiter(codes, np.int32, len(codes))

    def _category_codes(self, events: Sequence[Any]) -> NDArray[np.int32]:
        table = self.categories.table
        try:
            codes = [table[event.cat] for event in events]
        except KeyError:
            self.categories.learn([event.cat for event in events])
            codes = [table[event.cat] for event in events]
        return np.fromiter(codes, np.int32, len(codes))

    def _lane_codes(self, events: Sequence[Any]) -> NDArray[np.int32]:
        table = self.lanes.table
        try:
            codes = [table[event.tid][event.pid] for event in events]
        except KeyError:
            self.lanes.learn([(event.tid, event.pid) for event in events])
            codes = [table[event.tid][event.pid] for event in events]
        return np.fromiter(codes, np.int32, len(codes))

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
