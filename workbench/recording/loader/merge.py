"""From the records of all processes to one row a batch, on the trace's clock."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from workbench.recording.loader.iterating import Delivery
from workbench.recording.loader.layout import Kind, read
from workbench.recording.loader.probe import LoaderProbe
from workbench.store.columns import ITEM

Row = dict[str, Any]
Key = tuple[int, int, int]
"""Stream, epoch and number of a batch."""

_LOOKED = {
    "looked_ns": "dur_ns",
    "looked_cpu_ns": "cpu_ns",
    "looked_run_delay_ns": "run_delay_ns",
    "looked_read_ns": "read_ns",
    "looked_read_cpu_ns": "read_cpu_ns",
    "looked_read_run_delay_ns": "read_run_delay_ns",
    "looked_read_bytes": "read_bytes",
    "looked_storage_bytes": "storage_bytes",
}


def batches(probe: LoaderProbe) -> list[Row]:
    """One row a batch, in the order they were delivered; those that never were come last."""
    rows: dict[Key, Row] = {}
    for stream, about, records in _side_files(probe):
        _add_records(rows, stream, about, records)
    delivered = [found for stream in probe.streams for found in stream.delivered]
    delivered.sort(key=lambda found: found.next_start_ns or 0)
    ordered: list[Row] = []
    for found in delivered:
        row = rows.pop((found.stream, found.epoch, found.batch), {})
        ordered.append(row | _delivery(found))
    ordered += sorted(rows.values(), key=lambda row: row.get("fetch_start_ns") or 0)
    ordered += [_delivery(found) | {"batch": None, "epoch": None} for found in probe.unseen]
    loaders = {epoch.stream: epoch.loader for epoch in probe.epochs}
    for row in ordered:
        row["loader"] = loaders.get(row["stream"])
    _number_steps(probe, ordered)
    return ordered


def workers(probe: LoaderProbe) -> list[Row]:
    """One row a worker process that was started."""
    loaders = {epoch.stream: epoch.loader for epoch in probe.epochs}
    known = {(stream, about["number"]): about for stream, about, _ in _side_files(probe)}
    rows = []
    for context in probe.contexts:
        for number, process in enumerate(context.processes):
            row = dict(known.get((context.stream, number), {}))
            row.update(loader=loaders.get(context.stream), stream=context.stream, pid=process.pid)
            row.setdefault("worker", number)
            row["exit_code"] = process.exitcode
            row.pop("number", None)
            rows.append(row)
    return rows


def _side_files(probe: LoaderProbe) -> Iterable[tuple[int, Row, dict[Kind, list[Row]]]]:
    """Stream, what is known of the process, and its records."""
    for stream, parts in probe.inline.items():
        yield stream, {"worker": None, "number": -1}, read(b"".join(parts))
    if probe.folder is None:
        return
    for path in sorted(probe.folder.glob("*.records")):
        name, _, number = path.stem.partition("-")
        records = read(path.read_bytes())
        starts = records[Kind.START]
        about = dict(starts[0]) if starts else {"worker": int(number)}
        yield int(name), about | {"number": int(number)}, records


def _add_records(
    rows: dict[Key, Row], stream: int, about: Row, records: dict[Kind, list[Row]]
) -> None:
    for record in (*records[Kind.FETCH], *records[Kind.SEND]):
        row = rows.setdefault((stream, record["epoch"], record["batch"]), {})
        row.update(record, stream=stream, worker=about["worker"], pid=about.get("pid"))
    for record in records[Kind.ITEM]:
        row = rows.setdefault(
            (stream, record["epoch"], record["batch"]),
            {"stream": stream, "epoch": record["epoch"], "batch": record["batch"]},
        )
        row.setdefault("items", []).append({name: record[name] for name in ITEM})
    for row in rows.values():
        if row["stream"] == stream and "samples_ns" not in row:
            _sum_up(row)


def _sum_up(row: Row) -> None:
    """Time for the samples alone, and the sums over those that were looked at."""
    if row.get("fetch_ns") is None:
        return
    row["failed"] = bool(row["failed"])
    row["samples_ns"] = row["fetch_ns"] - (row["collate_ns"] or 0)
    row["samples_cpu_ns"] = max(row["fetch_cpu_ns"] - (row["collate_cpu_ns"] or 0), 0)
    looked = [item for item in row.get("items", ()) if item["read_ns"] is not None]
    row["looked_samples"] = sum(item["samples"] for item in looked)
    for name, of in _LOOKED.items():
        values = [item[of] for item in looked if item[of] is not None]
        row[name] = sum(values) if values else None


def _delivery(found: Delivery) -> Row:
    row: Row = {
        name: value for name, value in vars(found).items() if value is not None or name == "batch"
    }
    row["wait_start_ns"], row["wait_ns"] = found.next_start_ns, found.next_ns
    if found.received_ns is not None and found.next_start_ns is not None:
        pinned = found.received_ns + (found.pin_ns or 0)
        delivered = found.next_start_ns + (found.next_ns or 0)
        row["held_ns"] = max(delivered - pinned, 0)
    return row


def _number_steps(probe: LoaderProbe, rows: list[Row]) -> None:
    """The step that took each batch: the one whose wait it was delivered in."""
    starts = [wait.start_ns for wait in probe.waits]
    for row in rows:
        began = row.get("wait_start_ns")
        if began is None:
            continue
        index = bisect_right(starts, began) - 1
        if index >= 0 and began <= probe.waits[index].end_ns:
            row["step"] = probe.waits[index].step


def shifted(rows: list[Row], names: Iterable[str], offset_ns: int) -> list[Row]:
    """The rows with these instants, and those of their items, on another clock."""
    moved = []
    for row in rows:
        new = row | {name: row[name] + offset_ns for name in names if row.get(name) is not None}
        if "items" in row:
            new["items"] = [i | {"start_ns": i["start_ns"] + offset_ns} for i in row["items"]]
        moved.append(new)
    return moved
