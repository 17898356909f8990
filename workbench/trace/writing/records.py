"""The records of a trace as lines of JSON, a batch at a time."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import DEVICE_WORK, Collective, Trace
from workbench.trace.writing.spelling import (
    Spelled,
    json_value,
    microseconds,
    number,
    number_or_text,
    place,
)

BATCH = 20_000
_NUMBERS = (
    ("external_id", "External id"),
    ("correlation", "correlation"),
    ("device", "device"),
    ("stream", "stream"),
    ("bytes", "bytes"),
    ("sequence", "Sequence number"),
    ("forward_thread", "Fwd thread id"),
    ("python_id", "Python id"),
    ("python_parent", "Python parent id"),
    ("python_module", "Python module id"),
)
_TEXTS = (
    ("shapes", "shapes", "Input Dims", json_value),
    ("types", "types", "Input type", json_value),
    ("strides", "strides", "Input Strides", json_value),
    ("values", "values", "Concrete Inputs", json_value),
    ("stack", "stacks", "Call stack", json.dumps),
)
_LAUNCH_INTEGERS = (
    ("registers", "registers per thread"),
    ("shared_memory", "shared memory"),
    ("queued", "queued"),
    ("graph", "graph id"),
    ("graph_node", "graph node id"),
)
_LAUNCH_FLOATS = (
    ("occupancy", "est. achieved occupancy %"),
    ("blocks_per_sm", "blocks per SM"),
    ("warps_per_sm", "warps per SM"),
)
_COLLECTIVE = (
    ("group", "Process Group Name"),
    ("description", "Process Group Description"),
    ("group_size", "Group size"),
    ("ranks", "Process Group Ranks"),
    ("dtype", "dtype"),
    ("in_elements", "In msg nelems"),
    ("out_elements", "Out msg nelems"),
    ("sequence", "Seq"),
    ("rank", "Rank"),
    ("source", "Src Rank"),
    ("destination", "Dst Rank"),
    ("in_split", "In split size"),
    ("out_split", "Out split size"),
    ("rank_start", "Global rank start"),
    ("rank_stride", "Global rank stride"),
    ("communicator", "Comms Id"),
    ("asynchronous", "Is asynchronized op"),
)
_WAITS = (
    ("stream", "wait_on_stream"),
    ("recorded_by", "wait_on_cuda_event_record_corr_id"),
    ("event", "wait_on_cuda_event_id"),
)
_MEMORY = (
    ("total_allocated", "Total Allocated"),
    ("total_reserved", "Total Reserved"),
    ("address", "Addr"),
    ("device_type", "Device Type"),
    ("device_index", "Device Id"),
)


class Records:
    """The records of one trace; ``offset`` nanoseconds are added to every time."""

    def __init__(self, trace: Trace, offset: int, first_position: int = 0) -> None:
        self._trace = trace
        self._offset = offset
        self._position = first_position
        self._names = Spelled(trace.names)
        self._categories = Spelled(trace.categories)
        self._places = Spelled(trace.lanes, place)
        self._texts = {
            column: Spelled(getattr(trace, table), spell) for column, table, _, spell in _TEXTS
        }
        self._collectives: dict[int, list[Collective]] = {}
        for collective in trace.collectives:
            self._collectives.setdefault(collective.row, []).append(collective)

    def __iter__(self) -> Iterator[list[str]]:
        """All records: labels first, then every table in its order."""
        yield self._labels()
        trace = self._trace
        tables = (
            (self._durations, trace.events.ts),
            (self._flows, trace.flows.ts),
            (self._memory, trace.memory.ts),
            (self._instants, trace.instants.ts),
            (self._counters, trace.counters.ts),
        )
        for lines, ts in tables:
            for low in range(0, len(ts), BATCH):
                rows = slice(low, low + BATCH)
                yield lines(rows, microseconds(ts[rows] + self._offset))

    def _labels(self) -> list[str]:
        """Names of processes and threads, and the order to show them in: the host first."""
        of_device = processes_of_devices(self._trace)
        lines: list[str] = []
        seen: set[str] = set()
        for lane in sorted(self._trace.lanes, key=lambda lane: lane.pid in of_device):
            if lane.pid not in seen:
                seen.add(lane.pid)
                where = f'"pid":{number_or_text(lane.pid)},"tid":0'
                if lane.process:
                    on = f"GPU {of_device[lane.pid]}" if lane.pid in of_device else "CPU"
                    lines.append(_label("process_name", where, "name", lane.process))
                    lines.append(_label("process_labels", where, "labels", on))
                order = self._position + len(seen)
                lines.append(_label("process_sort_index", where, "sort_index", order))
            if lane.thread:
                lines.append(_label("thread_name", place(lane), "name", lane.thread))
        return lines

    def _durations(self, rows: slice, ts: list[str]) -> list[str]:
        events = self._trace.events
        columns = zip(
            self._spelled(self._categories, events.category[rows]),
            self._spelled(self._names, events.name[rows]),
            self._spelled(self._places, events.lane[rows]),
            ts,
            microseconds(events.dur[rows]),
            self._arguments(rows, len(ts)),
            strict=True,
        )
        return [
            f'{{"ph":"X","cat":{category},"name":{name},{where},"ts":{start},"dur":{dur}{args}}}'
            for category, name, where, start, dur, args in columns
        ]

    def _arguments(self, rows: slice, count: int) -> list[str]:
        events = self._trace.events
        parts: list[list[str]] = []
        for column, key in _NUMBERS:
            values = getattr(events, column)[rows]
            if (values != -1).any():
                parts.append([f',"{key}":{v}' if v != -1 else "" for v in values.tolist()])
        for column, _, key, _ in _TEXTS:
            codes, spelled = getattr(events, column)[rows], self._texts[column]
            if (codes >= 0).any():
                parts.append([f',"{key}":{spelled[c]}' if c >= 0 else "" for c in codes.tolist()])
        parts += self._launches(rows, count)
        parts += self._copies(rows, count)
        parts += self._waits(rows, count)
        parts += self._communication(rows, count)
        joined = map("".join, zip(*parts, strict=True)) if parts else [""] * count
        return [f',"args":{{{text[1:]}}}' if text else "" for text in joined]

    def _launches(self, rows: slice, count: int) -> list[list[str]]:
        table = self._trace.launch_configurations
        low, high = np.searchsorted(table.row, (rows.start, rows.start + count)).tolist()
        if low == high:
            return []
        found = [""] * count
        for line in range(low, high):
            text = f',"grid":{_extent(table.grid[line])}'
            if (table.block[line] >= 0).any():
                text += f',"block":{_extent(table.block[line])}'
            for column, key in _LAUNCH_INTEGERS:
                value = int(getattr(table, column)[line])
                text += f',"{key}":{value}' if value != -1 else ""
            for column, key in _LAUNCH_FLOATS:
                measured = float(getattr(table, column)[line])
                text += f',"{key}":{measured!r}' if np.isfinite(measured) else ""
            found[int(table.row[line]) - rows.start] = text
        return [found]

    def _copies(self, rows: slice, count: int) -> list[list[str]]:
        table = self._trace.copies
        low, high = np.searchsorted(table.row, (rows.start, rows.start + count)).tolist()
        found = [""] * count
        for row, value in zip(
            table.row[low:high].tolist(), table.bandwidth[low:high].tolist(), strict=True
        ):
            found[row - rows.start] = f',"memory bandwidth (GB/s)":{value!r}'
        return [found] if low < high else []

    def _waits(self, rows: slice, count: int) -> list[list[str]]:
        table = self._trace.waits
        low, high = np.searchsorted(table.row, (rows.start, rows.start + count)).tolist()
        found = [""] * count
        for line in range(low, high):
            told = ((key, int(getattr(table, column)[line])) for column, key in _WAITS)
            text = "".join(f',"{key}":{value}' for key, value in told if value != -1)
            found[int(table.row[line]) - rows.start] = text
        return [found] if low < high else []

    def _communication(self, rows: slice, count: int) -> list[list[str]]:
        inside = range(rows.start, rows.start + count)
        members = [row for row in self._collectives if row in inside]
        if not members:
            return []
        found = [""] * count
        for row in members:
            collective = self._collectives[row][0]
            text = f',"Collective name":{json.dumps(collective.name)}'
            for field, key in _COLLECTIVE:
                value = getattr(collective, field)
                if value is not None and value != "":
                    text += f',"{key}":{json.dumps(value)}'
            found[row - rows.start] = text
        return [found]

    def _flows(self, rows: slice, ts: list[str]) -> list[str]:
        flows = self._trace.flows
        columns = zip(
            map(chr, flows.phase[rows].tolist()),
            flows.id[rows].tolist(),
            self._spelled(self._categories, flows.category[rows]),
            self._spelled(self._places, flows.lane[rows]),
            ts,
            strict=True,
        )
        return [
            f'{{"ph":"{phase}","id":{ident},"cat":{category},"name":{category},{where},"ts":{start}'
            + (',"bp":"e"}' if phase == "f" else "}")
            for phase, ident, category, where, start in columns
        ]

    def _memory(self, rows: slice, ts: list[str]) -> list[str]:
        memory = self._trace.memory
        args = [f'"Bytes":{value}' for value in memory.bytes[rows].tolist()]
        for column, key in _MEMORY:
            values = getattr(memory, column)[rows].tolist()
            args = [
                f'{text},"{key}":{value}' if value != -1 else text
                for text, value in zip(args, values, strict=True)
            ]
        places = self._spelled(self._places, memory.lane[rows])
        return [
            '{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]",'
            f'{where},"ts":{start},"args":{{{text}}}}}'
            for where, start, text in zip(places, ts, args, strict=True)
        ]

    def _instants(self, rows: slice, ts: list[str]) -> list[str]:
        instants = self._trace.instants
        columns = zip(
            self._spelled(self._categories, instants.category[rows]),
            self._spelled(self._names, instants.name[rows]),
            self._spelled(self._places, instants.lane[rows]),
            ts,
            strict=True,
        )
        return [
            f'{{"ph":"i","s":"t","cat":{category},"name":{name},{where},"ts":{start}}}'
            for category, name, where, start in columns
        ]

    def _counters(self, rows: slice, ts: list[str]) -> list[str]:
        counters = self._trace.counters
        spelled = Spelled(counters.names)
        columns = zip(
            self._spelled(spelled, counters.series[rows]),
            self._spelled(self._places, counters.lane[rows]),
            ts,
            map(number, counters.value[rows].tolist()),
            strict=True,
        )
        return [
            f'{{"ph":"C","name":{name},{where},"ts":{start},"args":{{"value":{value}}}}}'
            for name, where, start, value in columns
        ]

    @staticmethod
    def _spelled(table: Spelled, codes: NDArray[Any]) -> list[str]:
        return [table[code] for code in codes.tolist()]


def processes_of_devices(trace: Trace) -> dict[str, int]:
    """The process ids that stand for a device, with its number."""
    events = trace.events
    rows = events.rows(*DEVICE_WORK)
    lanes, first = np.unique(events.lane[rows], return_index=True)
    devices = events.device[rows[first]]
    pairs = zip(lanes.tolist(), devices.tolist(), strict=True)
    return {trace.lanes[code].pid: device for code, device in pairs}


def _label(label: str, where: str, key: str, value: str | int) -> str:
    return f'{{"ph":"M","name":"{label}",{where},"args":{{"{key}":{json.dumps(value)}}}}}'


def _extent(values: NDArray[np.int32]) -> str:
    return json.dumps([value for value in values.tolist() if value >= 0], separators=(",", ":"))
