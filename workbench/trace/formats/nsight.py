"""The SQLite export of Nsight Systems (``nsys export --type sqlite``), whichever tables it has."""

from workbench.errors import TraceError
from workbench.trace.formats.content import Content
from workbench.trace.formats.nsight_device import add_device_tables
from workbench.trace.formats.nsight_host import add_host_tables
from workbench.trace.formats.nsight_ids import Identities
from workbench.trace.formats.records import Records
from workbench.trace.formats.sqlite import MAGIC, Tables, open_tables
from workbench.trace.table import Trace

_OURS = frozenset(
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "OSRT_API")
)
_SHOWN = 6

_OTHERS: tuple[tuple[str, str], ...] = (
    (
        "rocpd_",
        "a rocpd database of ROCm, which is not read: write JSON with `rocprofv3 --output-format "
        "json`, or convert this one with `rocpd convert`.",
    ),
    (
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
        "a database of nvprof, which is not read: record with torch.profiler or Nsight Systems.",
    ),
)
"""How a table of a known database begins, and what the database is."""


def is_sqlite(head: bytes, _: str) -> bool:
    """Whether a file is an SQLite database."""
    return head.startswith(MAGIC)


def holds_events(content: Content) -> bool:
    """Whether a database has a table that is read here.

    Raises:
        TraceError: It is damaged.
    """
    with open_tables(content) as tables:
        return bool(_OURS & set(tables.names()))


def read_nsight(content: Content) -> Trace:
    """Read an export of Nsight Systems.

    Raises:
        TraceError: It is another database, or damaged.
    """
    with open_tables(content) as tables:
        if not _OURS & set(tables.names()):
            raise TraceError(f"{content.name} is no trace but {_meaning(tables)}")
        records, ids = Records(content.name), Identities(tables)
        add_host_tables(records, tables, ids)
        add_device_tables(records, tables, ids)
        return records.finish(base_ns=_started(tables))


def _meaning(tables: Tables) -> str:
    names = tables.names()
    for start, meaning in _OTHERS:
        if any(name.startswith(start) for name in names):
            return meaning
    if "StringIds" in names:
        return (
            "an Nsight Systems export without CUDA calls, kernels or NVTX ranges: profile with "
            "`nsys profile --trace=cuda,nvtx`, and export again."
        )
    shown = ", ".join(name[:40] for name in names[:_SHOWN]) or "none"
    more = ", …" if len(names) > _SHOWN else ""
    return (
        f"an SQLite database of something else (its tables: {shown}{more}). Nsight Systems writes "
        "one with `nsys export --type sqlite`."
    )


def _started(tables: Tables) -> int | None:
    """Unix time of stamp 0."""
    for (stamps,) in tables.select("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"]):
        if isinstance(stamps[0], int) and 0 < stamps[0] < 2**62:
            return stamps[0]
    return None
