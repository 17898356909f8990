"""Traces that torch.profiler did not write, one format a file, all into the same table."""

from collections.abc import Callable
from typing import NamedTuple

from workbench.trace.formats.content import Content, content_of
from workbench.trace.formats.lane_file import is_lane_file, read_lane_file
from workbench.trace.formats.nsight import holds_events, is_sqlite, read_nsight
from workbench.trace.formats.perfetto import is_perfetto, read_perfetto
from workbench.trace.formats.rocprofv3 import is_rocprofv3, read_rocprofv3
from workbench.trace.formats.xplane import is_xplane, read_xplane
from workbench.trace.source import Source
from workbench.trace.table import Trace


class Format(NamedTuple):
    """A format: how its first bytes and the file's name show it, and what reads it."""

    name: str
    shows: Callable[[bytes, str], bool]
    read: Callable[[Content], Trace]
    holds: Callable[[Content], bool] = lambda _: True
    """Whether a file of this kind holds a trace, where a look behind its first bytes is cheap."""


FORMATS: tuple[Format, ...] = (
    Format("Nsight Systems (SQLite)", is_sqlite, read_nsight, holds_events),
    Format("rocprofv3 (JSON)", is_rocprofv3, read_rocprofv3),
    Format("XLA profile (xplane.pb)", is_xplane, read_xplane),
    Format("Perfetto (pftrace)", is_perfetto, read_perfetto),
    Format("lane file (CSV)", is_lane_file, read_lane_file),
)


def format_of(head: bytes, name: str) -> Format | None:
    """The format, other than Kineto's and Chrome's, that a file's first bytes and name show."""
    return next((known for known in FORMATS if known.shows(head, name)), None)


def is_other_format(source: Source, head: bytes, given: object) -> bool:
    """Whether a file is a trace of such a format, as far as a quick look tells.

    Raises:
        TraceError: It is damaged.
    """
    known = format_of(head, source.name)
    return known is not None and known.holds(content_of(source, head, given))


def read_other_format(source: Source, head: bytes, given: object) -> Trace | None:
    """Read a file of another format than Kineto's and Chrome's; ``None`` if it is none.

    Args:
        source: The opened file.
        head: Its first bytes of uncompressed content.
        given: What the user gave; a path lets large files be mapped instead of read.

    Raises:
        TraceError: It is of such a format, and cannot be read.
    """
    known = format_of(head, source.name)
    return None if known is None else known.read(content_of(source, head, given))
