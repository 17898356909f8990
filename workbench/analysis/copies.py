"""Copies and sets by kind: bytes, bandwidth, and how much of them other work hides.

Which way a copy goes, and whether the host's memory is pageable or pinned, is told by its name.
Bandwidth is all bytes over all time, not a mean of rates. An instant of several copies counts as
exposed for the one that began first, so that the exposed time of all kinds is that of the device.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.device_time import work_classes
from workbench.analysis.devices import work_rows
from workbench.analysis.intervals import covered_until, joined, subtract, union
from workbench.trace.table import Kind, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from workbench.analysis.ranges import Range

COPY_COLUMNS = (
    *("device", "kind", "host_memory", "calls", "bytes", "total_ns", "gb_s"),
    *("exposed_ns", "hidden_ns", "hidden_share"),
)
KINDS: tuple[tuple[str, str], ...] = (
    ("HtoD", r"\bH(ost)?to(D(evice)?|A(rray)?)\b|HostToDevice|\bH2D\b"),
    ("DtoH", r"\b(D(evice)?|A(rray)?)to(H(ost)?)\b|DeviceToHost|\bD2H\b"),
    ("PtoP", r"\bPtoP\b|\bP2P\b|PeerToPeer"),
    ("DtoD", r"\b(D(evice)?|A(rray)?)to(D(evice)?|A(rray)?)\b|DeviceToDevice|\bD2D\b"),
    ("HtoH", r"\bHtoH\b|HostToHost|\bH2H\b"),
)
"""Kind of a copy and the pattern of its name; the first that matches wins."""
SET = "set"
OTHER = "other"

Times = NDArray[np.int64]
_MEMORY = re.compile(r"\b(pageable|pinned|managed)\b", re.IGNORECASE)
_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in KINDS)


class CopyName(NamedTuple):
    """What the name of a copy tells."""

    kind: str
    host_memory: str | None
    """pageable, pinned or managed; ``None`` where the name does not tell."""


@lru_cache(maxsize=4096)
def copy_name(name: str) -> CopyName:
    """The kind of a copy of this name, and the host's memory."""
    kind = next((kind for kind, pattern in _PATTERNS if pattern.search(name)), OTHER)
    memory = _MEMORY.search(name)
    return CopyName(kind, memory[1].lower() if memory and "H" in kind else None)


class Copies(NamedTuple):
    """Copies and sets that run in the windows, in time order."""

    row: NDArray[np.intp]
    device: NDArray[np.int16]
    name: tuple[CopyName, ...]
    bytes: Times
    """-1: not recorded."""
    total_ns: Times
    """The whole length of each, also beyond the window."""
    exposed_ns: Times
    """Inside the window while neither compute nor communication nor an earlier copy runs."""
    inside_ns: Times
    """Inside the window."""


def find_copies(trace: Trace, windows: Mapping[int, Range | None]) -> Copies:
    """The copies and sets of every device that has a window."""
    events = trace.events
    rows, exposed, inside = [np.empty(0, np.intp)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for device, window in windows.items():
        if window is None:
            continue
        mine = work_rows(trace, device)
        mine = mine[events.kind[mine] != Kind.KERNEL]
        start = np.clip(events.ts[mine], window.start, window.end)
        end = np.clip(events.end[mine], window.start, window.end)
        mine, start, end = mine[end > start], start[end > start], end[end > start]
        rows.append(mine)
        inside.append(end - start)
        exposed.append(_exposed(trace, device, start, end))
    found = np.concatenate(rows)
    names = {code: _name(trace, code, found) for code in np.unique(events.name[found]).tolist()}
    return Copies(
        row=found,
        device=events.device[found],
        name=tuple(names[code] for code in events.name[found].tolist()),
        bytes=events.bytes[found],
        total_ns=events.dur[found].astype(np.int64),
        exposed_ns=np.concatenate(exposed),
        inside_ns=np.concatenate(inside),
    )


def copy_table(found: Copies) -> pd.DataFrame:
    """One row a device, kind and host memory, longest first; columns are ``COPY_COLUMNS``.

    ``bytes`` and ``gb_s`` are missing where one of the copies has no size. Hidden is what is not
    exposed; its share is of the time inside the window.
    """
    import pandas as pd

    groups: dict[tuple[int, CopyName], list[int]] = {}
    for at, (device, name) in enumerate(zip(found.device.tolist(), found.name, strict=True)):
        groups.setdefault((device, name), []).append(at)
    rows: list[dict[str, Any]] = []
    for (device, name), members in groups.items():
        own = np.array(members)
        known = bool((found.bytes[own] >= 0).all()) and name.kind != SET
        size, took = int(found.bytes[own].sum()), int(found.total_ns[own].sum())
        exposed, inside = int(found.exposed_ns[own].sum()), int(found.inside_ns[own].sum())
        rows.append(
            {
                "device": device,
                "kind": name.kind,
                "host_memory": name.host_memory,
                "calls": len(own),
                "bytes": size if known else None,
                "total_ns": took,
                "gb_s": size / took if known and took else None,
                "exposed_ns": exposed,
                "hidden_ns": inside - exposed,
                "hidden_share": (inside - exposed) / inside,
            }
        )
    rows.sort(key=lambda row: (-row["total_ns"], row["device"], row["kind"]))
    table = pd.DataFrame(rows, columns=list(COPY_COLUMNS))
    table["host_memory"] = pd.Series([row["host_memory"] for row in rows], dtype=object)
    return table.astype({"bytes": "Int64", "gb_s": "float64", "hidden_share": "float64"})


def copy_calls(found: Copies) -> pd.DataFrame:
    """One row a copy with a known size: device, kind, host_memory, bytes, total_ns, gb_s."""
    import pandas as pd

    at = np.flatnonzero((found.bytes > 0) & (found.total_ns > 0))
    at = at[[found.name[i].kind != SET for i in at.tolist()]]
    names = [found.name[i] for i in at.tolist()]
    return pd.DataFrame(
        {
            "device": found.device[at],
            "kind": [name.kind for name in names],
            "host_memory": pd.Series([name.host_memory for name in names], dtype=object),
            "bytes": found.bytes[at],
            "total_ns": found.total_ns[at],
            "gb_s": found.bytes[at] / found.total_ns[at],
        }
    )


def _exposed(trace: Trace, device: int, start: Times, end: Times) -> Times:
    """Per copy, the time that neither other work nor a copy that began earlier covers."""
    work = work_classes(trace, device)
    alone = subtract(union(start, end), joined(work.compute, work.communication))
    reach = np.maximum.accumulate(np.concatenate(([np.iinfo(np.int64).min], end[:-1])))
    begin = np.minimum(np.maximum(start, reach[: len(start)]), end)
    return covered_until(alone, end) - covered_until(alone, begin)


def _name(trace: Trace, code: int, rows: NDArray[np.intp]) -> CopyName:
    events = trace.events
    if (events.kind[rows[events.name[rows] == code]] == Kind.MEMSET).all():
        return CopyName(SET, None)
    return copy_name(trace.names[code])
