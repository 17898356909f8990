"""Growing columns become one finished trace: joined, cleaned of impossible times, sorted."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace import header as heads
from workbench.trace.clean_times import keep_possible
from workbench.trace.gather import Gatherer
from workbench.trace.join import join_marks
from workbench.trace.kinds import kinds
from workbench.trace.notes import Notes
from workbench.trace.stamps import INVALID
from workbench.trace.table import (
    DEVICE_WORK,
    Collective,
    Copies,
    Counters,
    Events,
    Flows,
    Instants,
    Kind,
    Lane,
    LaunchConfigurations,
    MemoryEvents,
    Trace,
    Waits,
)
from workbench.trace.vendors import vendor

_EPOCH_NS = 10**18
"""Stamps behind September 2001 are Unix time, earlier ones count from an unknown moment."""

_DEPTH = np.full(max(Kind) + 1, len(Kind), np.int8)
"""Per kind, how far inside it lies among records of one and the same time."""
_OUTSIDE_IN = (Kind.ANNOTATION, Kind.PYTHON, Kind.OPERATOR, Kind.RUNTIME, Kind.DRIVER)
_DEPTH[list(_OUTSIDE_IN)] = range(len(_OUTSIDE_IN))

_TIES_AT_ONCE = 1 << 16


def assemble(source: str, gathered: Gatherer, header: Mapping[str, Any], notes: Notes) -> Trace:
    """Finish the columns; the gatherer is empty afterwards."""
    rows = gathered.rows
    categories = tuple(gathered.categories)
    lanes = _lanes(gathered)
    columns = gathered.durations
    ts, dur = columns["ts"].take(), columns["dur"].take()
    unmatched = join_marks(gathered.marks, dur, notes)
    kind = kinds(gathered, lanes)
    keep = keep_possible(ts, dur, unmatched, kind, notes)
    order, ts = _order(ts, dur, keep, partial(_enclosing, kind, gathered))
    first = int(ts[0]) if len(order) else _first_of(gathered)
    ts -= first
    base = heads.base_time(header)
    position = np.full(rows, -1, np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    sorted_columns = {"ts": ts, "dur": dur[order], "kind": kind[order]}
    del ts, dur, kind, keep
    events = _events(gathered, sorted_columns, order)
    del order
    counts = np.bincount(events.device[events.rows(*DEVICE_WORK)].clip(-1).astype(np.int64) + 1)
    used = set(np.flatnonzero(counts[1:]).tolist())
    processes = {name for lane in lanes for name in (lane.process, lane.pid)}
    names = tuple(gathered.names)
    default = vendor(header, categories, processes, lambda: _names_of_work(events, names))
    rank, world = heads.rank_and_world(header, source)
    arguments = gathered.arguments
    return Trace(
        source=source,
        events=events,
        names=names,
        categories=categories,
        shapes=arguments.codes["shapes"].texts(),
        types=arguments.codes["types"].texts(),
        strides=arguments.codes["strides"].texts(),
        values=arguments.codes["values"].texts(),
        stacks=tuple(arguments.stacks),
        lanes=lanes,
        flows=Flows(**_in_order(_at(gathered.flows, first))),
        memory=MemoryEvents(**_at(gathered.memory, first)),
        instants=Instants(**_at(gathered.instants, first)),
        counters=Counters(**_at(gathered.counters, first), names=tuple(gathered.series)),
        launch_configurations=_launches(gathered, position),
        copies=Copies(**_by_row(arguments.copies, position)),
        waits=Waits(**_by_row(arguments.waits, position)),
        collectives=_collectives(gathered, position),
        devices=heads.devices(header, used, default),
        base_ns=first if first > _EPOCH_NS else base + first if base is not None else None,
        rank=rank,
        world_size=world,
        header=dict(header),
        violations=notes.violations(sum(gathered.phases.values())),
    )


def _events(
    gathered: Gatherer, columns: dict[str, NDArray[Any]], order: NDArray[np.int64]
) -> Events:
    rows, arguments = gathered.rows, gathered.arguments
    for name in ("name", "category", "lane"):
        columns[name] = gathered.durations[name].take()[order]
    for name, column in (arguments.numbers | arguments.texts | {"stack": arguments.stack}).items():
        columns[name] = _chosen(column.take(rows), order)
    return Events(**columns)


def _chosen(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Some values of a column; a constant one still takes no memory."""
    constant = values.strides == (0,) and len(values) > 0
    return np.broadcast_to(values[:1], len(rows)) if constant else values[rows]


def _order(
    ts: NDArray[np.int64],
    dur: NDArray[np.int64],
    keep: NDArray[np.bool_] | None,
    enclosing: Callable[[NDArray[np.int64]], tuple[NDArray[Any], ...]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in time order, longer first on ties, then what encloses; and their starts."""
    if keep is None:
        rows = np.argsort(ts, kind="stable")
    else:
        rows = np.flatnonzero(keep)
        rows = rows[np.argsort(ts[rows], kind="stable")]
    start = ts[rows]
    tied = np.flatnonzero(start[1:] == start[:-1])
    begin = 0
    while begin < len(tied):
        end = min(begin + _TIES_AT_ONCE, len(tied))
        while end < len(tied) and tied[end] == tied[end - 1] + 1:
            end += 1
        _order_ties(rows, start, tied[begin:end], dur, enclosing)
        begin = end
    return rows, start


def _order_ties(
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    tied: NDArray[np.int64],
    dur: NDArray[np.int64],
    enclosing: Callable[[NDArray[np.int64]], tuple[NDArray[Any], ...]],
) -> None:
    """Put those that start with the next one into order, where file order is not that already."""
    is_tied = np.zeros(tied[-1] - tied[0] + 2, bool)
    is_tied[tied - tied[0]] = is_tied[tied - tied[0] + 1] = True
    members = np.flatnonzero(is_tied) + tied[0]
    among, at = rows[members], start[members]
    keys = (*enclosing(among), -dur[among], at)
    wrong, equal = np.zeros(len(members) - 1, bool), np.ones(len(members) - 1, bool)
    for key in reversed(keys):
        wrong |= equal & (key[1:] < key[:-1])
        equal &= key[1:] == key[:-1]
    if wrong.any():
        rows[members] = among[np.lexsort(keys)]


def _enclosing(
    kind: NDArray[np.uint8], gathered: Gatherer, rows: NDArray[np.int64]
) -> tuple[NDArray[Any], ...]:
    """Keys for records of one and the same time, the last one first: file order is no proof.

    An operator holds the calls in it and not the other way round, and of two operators or frames
    the one with the lower number began first.
    """
    numbers = gathered.arguments.numbers
    return (
        numbers["python_id"].tail(rows),
        numbers["external_id"].tail(rows),
        _DEPTH[kind[rows]],
    )


def _first_of(gathered: Gatherer) -> int:
    """The first moment of a trace without durations."""
    firsts = []
    for table in (gathered.memory, gathered.instants, gathered.counters, gathered.flows):
        stamps = table["ts"].peek()
        stamps = stamps[stamps != INVALID]
        if len(stamps):
            firsts.append(int(stamps.min()))
    return min(firsts, default=0)


def _at(columns: Mapping[str, Any], first: int) -> dict[str, NDArray[Any]]:
    """A table of moments, counted from the first event; moments without a stamp are left out."""
    taken = {name: column.take() for name, column in columns.items()}
    valid = taken["ts"] != INVALID
    if not valid.all():
        taken = {name: values[valid] for name, values in taken.items()}
    taken["ts"] = taken["ts"] - first
    return taken


def _in_order(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    order = np.argsort(columns["ts"], kind="stable")
    return {name: columns.pop(name)[order] for name in tuple(columns)}


def _lanes(gathered: Gatherer) -> tuple[Lane, ...]:
    labels = gathered.labels
    processes: dict[str, str] = {}
    for (label, pid, _), text in labels.items():
        if label == "process_name" or (label == "process_labels" and pid not in processes):
            processes[pid] = text
    return tuple(
        Lane(
            pid=pid,
            tid=tid,
            process=processes.get(pid, ""),
            thread=labels.get(("thread_name", pid, tid), ""),
        )
        for pid, tid in gathered.lanes.keys_in_order()
    )


def _launches(gathered: Gatherer, position: NDArray[np.int32]) -> LaunchConfigurations:
    arguments = gathered.arguments
    rows = position[arguments.launch_row.take()]
    kept = rows >= 0
    order = np.flatnonzero(kept)[np.argsort(rows[kept], kind="stable")]
    extents = _extents(arguments.codes["extent"].texts())
    count = len(rows)
    columns = {n: _chosen(column.take(count), order) for n, column in arguments.launch.items()}
    for name in ("grid", "block"):
        columns[name] = extents[columns[name]]
    return LaunchConfigurations(row=rows[order].astype(np.int64), **columns)


def _names_of_work(events: Events, names: tuple[str, ...]) -> list[str]:
    """Names of the device work, and of calls into a runtime or driver."""
    used = np.zeros(len(names), bool)
    used[events.name[events.rows(*DEVICE_WORK, Kind.RUNTIME, Kind.DRIVER)]] = True
    return [names[code] for code in np.flatnonzero(used).tolist()]


def _by_row(columns: Mapping[str, Any], position: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """A table that tells more about some rows, in the order of the sorted events."""
    taken = {name: column.take() for name, column in columns.items()}
    rows = position[taken["row"]]
    kept = rows >= 0
    order = np.flatnonzero(kept)[np.argsort(rows[kept], kind="stable")]
    found = {name: values[order] for name, values in taken.items()}
    return found | {"row": rows[order].astype(np.int64)}


def _extents(texts: tuple[str, ...]) -> NDArray[np.int32]:
    """Three numbers for each text such as ``[128,1,1]``; the last line is *not recorded*."""
    table = np.full((len(texts) + 1, 3), -1, np.int32)
    for line, text in enumerate(texts):
        digits = "".join(c if c.isdecimal() and c.isascii() else " " for c in text).split()
        numbers = [int(number) for number in digits[:3] if len(number) < 10]
        if numbers:
            table[line] = [*numbers, 1, 1][:3]
    return table


def _collectives(gathered: Gatherer, position: NDArray[np.int32]) -> tuple[Collective, ...]:
    entries = []
    for entry in gathered.arguments.collectives:
        row = int(position[entry["row"]])
        if row >= 0:
            entries.append(Collective(**{**entry, "row": row}))
    return tuple(sorted(entries, key=lambda entry: entry.row))
