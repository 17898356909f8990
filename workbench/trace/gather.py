"""Decoded events become columns, a batch at a time."""

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.arguments import ArgumentColumns
from workbench.trace.batch import Batch, chosen
from workbench.trace.categories import Group, group_of
from workbench.trace.columns import Codes, Column, Lanes, integers, packed
from workbench.trace.lenient import to_float, to_int, to_text
from workbench.trace.schema import Family

_MOST_CATEGORIES = 32_000
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
        for group in np.flatnonzero(np.bincount(groups)).tolist():
            places = np.flatnonzero(groups == group)
            arguments = [event.args for event in chosen(events, places)]
            self.arguments.add(arguments, places + self.rows, Group(group))
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
        memory = chosen(events, np.flatnonzero(is_memory))
        others = chosen(events, np.flatnonzero(~is_memory))
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
        return packed(codes, "i")

    def _category_codes(self, events: Sequence[Any]) -> NDArray[np.int32]:
        table = self.categories.table
        try:
            codes = [table[event.cat] for event in events]
        except KeyError:
            self.categories.learn([event.cat for event in events])
            codes = [table[event.cat] for event in events]
        return packed(codes, "i")

    def _lane_codes(self, events: Sequence[Any]) -> NDArray[np.int32]:
        table = self.lanes.table
        try:
            codes = [table[event.tid][event.pid] for event in events]
        except KeyError:
            self.lanes.learn([(event.tid, event.pid) for event in events])
            codes = [table[event.tid][event.pid] for event in events]
        return packed(codes, "i")

    def _flow_ids(self, ids: list[Any]) -> NDArray[np.int64]:
        try:
            return packed(ids, "q")
        except ValueError:
            numbers = [to_int(ident) for ident in ids]
        for index, number in enumerate(numbers):
            if number == -1:
                numbers[index] = -2 - self._flow_names[to_text(ids[index])]
        return np.array(numbers, np.int64)


def _columns(int64: str, int32: str, int16: str = "") -> dict[str, Column]:
    columns = {name: Column(np.int64) for name in int64.split()}
    columns |= {name: Column(np.int32) for name in int32.split()}
    return columns | {name: Column(np.int16) for name in int16.split()}
