"""Write traces as Chrome JSON: what is read back is the same table."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import TraceError
from workbench.trace.header import base_time
from workbench.trace.table import Trace
from workbench.trace.writing.cut import cut
from workbench.trace.writing.devices import described_devices
from workbench.trace.writing.merge import merge
from workbench.trace.writing.records import Records
from workbench.trace.writing.whole_file import whole_file

_LEAD_NS = 1_000_000
"""Where the first event stands when the file's own zero is not known: not at 0, which readers take
for *not recorded*."""
_LATEST_NS = 2**42 * 1000
"""Up to here, doubles of microseconds hold whole nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was written."""

    path: Path
    records: int
    """Duration events."""
    size_bytes: int
    notes: tuple[str, ...] = ()
    """What a reader of the file must know, such as clocks that are not aligned."""


def write_trace(
    trace: Trace,
    path: str | Path,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    steps: tuple[int, int] | None = None,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Written:
    """Write a trace or a slice of it as Chrome JSON, compressed when the name ends in ``.gz``.

    Args:
        trace: The event table.
        path: Name of the new file; it ends in ``.json`` or ``.json.gz``.
        start_ns: Start of the slice, in nanoseconds after the trace's first event.
        end_ns: End of the slice.
        steps: First and last step of the slice instead, both kept; see ``cut``.
        overwrite: Whether an existing file may be replaced.
        progress: Called with the number of records written so far.

    Raises:
        TraceError: The slice is empty, or the file cannot be written.
    """
    if (start_ns, end_ns, steps) != (None, None, None):
        trace = cut(trace, start_ns=start_ns, end_ns=end_ns, steps=steps)
    base, offset = _origin(trace)
    header = {**described_devices(trace), **trace.header}
    header.pop("baseTimeNanoseconds", None)
    if base is not None:
        header["baseTimeNanoseconds"] = base
    parts = [(trace, offset)]
    return _write(Path(path), parts, header, overwrite=overwrite, progress=progress)


def write_merged(
    traces: Sequence[Trace],
    path: str | Path,
    *,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Written:
    """Write the traces of several ranks into one file, for viewers.

    Processes carry the rank in their name; ids are made unique. Ranks are placed by the Unix time
    of their first event where all tell it; ``Written.notes`` says where clocks are not aligned.

    Raises:
        TraceError: The file cannot be written.
    """
    merged = merge(traces)
    parts = [(part, _LEAD_NS + shift) for part, shift in merged.parts]
    header = dict(merged.header)
    if merged.base_ns is not None:
        header["baseTimeNanoseconds"] = merged.base_ns - _LEAD_NS
    return _write(
        Path(path), parts, header, notes=merged.notes, overwrite=overwrite, progress=progress
    )


def _origin(trace: Trace) -> tuple[int | None, int]:
    """Unix time of stamp 0 in the file, and the stamp of the first event."""
    if trace.base_ns is None:
        return None, _LEAD_NS
    base = base_time(trace.header)
    if base is None or not 0 < trace.base_ns - base < _LATEST_NS:
        base = max(0, trace.base_ns - _LEAD_NS)
    return base, trace.base_ns - base


def _write(
    path: Path,
    parts: Sequence[tuple[Trace, int]],
    header: Mapping[str, Any],
    *,
    notes: tuple[str, ...] = (),
    overwrite: bool,
    progress: Callable[[int], None] | None,
) -> Written:
    if not any(len(trace.events) + len(trace.memory.ts) for trace, _ in parts):
        raise TraceError(
            f"{path} was not written: there are no records to write. Give a longer --range or "
            "more --steps, or another trace."
        )
    with whole_file(path, overwrite=overwrite) as file:
        file.write(b'{"traceEvents": [\n')
        _write_parts(file, parts, progress)
        file.write(b"\n]")
        for key, value in header.items():
            file.write(f",\n{json.dumps(key)}: {json.dumps(value)}".encode())
        file.write(b"\n}\n")
    records = sum(len(trace.events) for trace, _ in parts)
    return Written(path=path, records=records, size_bytes=path.stat().st_size, notes=notes)


def _write_parts(
    file: BinaryIO,
    parts: Sequence[tuple[Trace, int]],
    progress: Callable[[int], None] | None,
) -> None:
    written = position = 0
    for trace, offset in parts:
        for lines in Records(trace, offset, position):
            if not lines:
                continue
            file.write((",\n" if written else "").encode() + ",\n".join(lines).encode())
            written += len(lines)
            if progress is not None:
                progress(written)
        position += len(trace.lanes)
