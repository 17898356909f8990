"""The file that Perfetto is given: the trace itself, or what we made of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.trace.table import Trace

_MENDED = frozenset({"repaired_json", "truncated", "unreadable_records", "wrong_checksum"})


@contextmanager
def viewable(path: Path, read: Callable[[], Trace]) -> Iterator[Path]:
    """The trace as sound Chrome JSON: untouched where it is that, else written anew for a while."""
    if _is_chrome_json(path) and not _is_mended(read()):
        yield path
        return
    from workbench.trace.writing import write_trace

    name = path.name.removesuffix(".gz").removesuffix(".json")
    with TemporaryDirectory(prefix="workbench-perfetto-") as folder:
        yield write_trace(read(), Path(folder) / f"{name}.json.gz").path


def _is_chrome_json(path: Path) -> bool:
    from workbench.trace.source import SIZE_LIMIT, open_source

    source, head = open_source(path, SIZE_LIMIT)
    with source:
        return head.lstrip().startswith(b"[") or b'"traceEvents"' in head


def _is_mended(trace: Trace) -> bool:
    return any(violation.code in _MENDED for violation in trace.violations)
