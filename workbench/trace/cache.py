"""Traces that were read before open at once: their columns are kept as a memory-mapped Arrow file.

In a Run folder the cache stands beside the trace (``rank0.events.arrow``), for traces elsewhere in
the user's cache folder. It counts only for the same file (name, size, time of change, a hash of its
first and last bytes), read by the same code; anything else is read anew and written over. A cache
that cannot be written is no error: the trace is then read again next time.
"""

import hashlib
import mmap
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache as once
from pathlib import Path
from typing import Any

import msgspec

from workbench.store.record import RECORD_NAME
from workbench.trace.arrow import WrongCacheError, from_batch, stamped_key, to_batch
from workbench.trace.reader import read
from workbench.trace.table import Trace
from workbench.units import name_text
from workbench.version import version

VARIABLE = "WORKBENCH_CACHE"
"""Environment variable that names another cache folder."""
SCHEMA = "workbench.events/1"
ENDING = ".events.arrow"
USER_CACHE_BYTES = 4 * 2**30
"""Most bytes of caches in the user's folder; those not used for longest are dropped."""
LEAST_WORTH_BYTES = 1 << 18
"""Smaller traces outside of Run folders are read as fast as their caches."""

_PARTIAL = ".partial"
_ABANDONED_AFTER_S = 3600
_END_BYTES = 1 << 16
_SPARE_BYTES = 100_000_000
_TRACE_ENDINGS = (".gz", ".zip", ".json", ".trace")


def open_trace(
    path: str | Path, *, cache: bool = True, progress: Callable[[int], None] | None = None
) -> Trace:
    """Read a trace file, or map what reading it gave the last time.

    Columns of a mapped trace are read-only.

    Args:
        path: The trace; anything that ``read`` takes as a path.
        cache: Whether a cache may be used and written.
        progress: Called while the file is read with the number of bytes of text so far; never
            when a cache is used.

    Raises:
        TraceError: It is no trace, too large, or damaged beyond repair.
    """
    path = Path(path)
    key = file_key(path) if cache else None
    if key is None:
        return read(path, progress=progress)
    places = list(cache_places(path, key))
    found = _first(places, key)
    if found is not None:
        return found
    trace = read(path, progress=progress)
    if file_key(path) == key:  # else somebody writes to it right now
        _ = any(store(trace, key, place) for place in places)
    return trace


def cached(path: Path) -> Trace | None:
    """The trace of a file, where a cache of it counts."""
    key = file_key(path)
    return None if key is None else _first(cache_places(path, key), key)


def _first(places: Iterable[Path], key: str) -> Trace | None:
    return next((found for place in places if (found := load(place, key)) is not None), None)


def cache_folder() -> Path:
    """Where caches of traces outside of Run folders are."""
    import platformdirs

    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / "traces"
    return Path(platformdirs.user_cache_dir("torch-workbench", appauthor=False)) / "traces"


def cache_places(path: Path, key: str) -> Iterator[Path]:
    """Where the cache of a trace may stand, best first."""
    in_run = (path.parent / RECORD_NAME).is_file()
    if in_run:
        stem = path.name
        for ending in _TRACE_ENDINGS:
            stem = stem.removesuffix(ending)
        yield path.with_name(stem + ENDING)
    if in_run or path.stat().st_size >= LEAST_WORTH_BYTES:
        digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        yield cache_folder() / f"{digest}{ENDING}"


def file_key(path: Path) -> str | None:
    """What a cache of this file must carry to count; ``None`` for what is no plain file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            told = os.fstat(file.fileno())
            ends = hashlib.blake2b(file.read(_END_BYTES), digest_size=16)
            file.seek(max(0, told.st_size - _END_BYTES))
            ends.update(file.read(_END_BYTES))
    except OSError:
        return None
    parts = [SCHEMA, _reader(), name_text(path), told.st_size, told.st_mtime_ns, ends.hexdigest()]
    return msgspec.json.encode(parts).decode()


def load(place: Path, key: str) -> Trace | None:
    """The trace of a cache, or ``None`` when there is none that counts."""
    import pyarrow as pa

    wrong = (OSError, ValueError, KeyError, TypeError, msgspec.MsgspecError, MemoryError)
    try:
        if not place.is_file():
            return None
        with pa.ipc.open_file(_mapped(place)) as file:
            if stamped_key(file.schema) != key:
                return None
            trace = from_batch(file.get_batch(0))
    except (*wrong, pa.ArrowException, WrongCacheError):
        return None
    with suppress(OSError):
        os.utime(place)  # used just now: the last to be dropped
    return trace


def _mapped(place: Path) -> Any:
    """The bytes of a file; Linux maps all pages at once, ten times faster than one by one."""
    import pyarrow as pa

    populate = getattr(mmap, "MAP_POPULATE", None)
    with place.open("rb") as file:
        number = file.fileno()
        if populate is None:
            data = mmap.mmap(number, 0, access=mmap.ACCESS_READ)
        else:
            data = mmap.mmap(number, 0, mmap.MAP_SHARED | populate, mmap.PROT_READ)
    return pa.py_buffer(data)


def store(trace: Trace, key: str, place: Path) -> bool:
    """Write a cache whole or not at all; False when it could not be written."""
    import pyarrow as pa

    partial = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}{_PARTIAL}")
    try:
        batch = to_batch(trace, key)
        place.parent.mkdir(parents=True, exist_ok=True)
        size = batch.nbytes
        users = place.parent == cache_folder()
        if users and size > USER_CACHE_BYTES:
            return False
        if shutil.disk_usage(place.parent).free < size + _SPARE_BYTES:
            return False
        _write(batch, partial)
        partial.replace(place)
    except (OSError, ValueError, TypeError, MemoryError, pa.ArrowException):
        return False
    finally:
        with suppress(OSError):
            partial.unlink()
    _tidy(place.parent, USER_CACHE_BYTES if users else None)
    return True


def _write(batch: Any, partial: Path) -> None:
    import pyarrow as pa

    with partial.open("xb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _tidy(folder: Path, limit: int | None) -> None:
    """Remove what killed processes left and, above a limit, the caches not used for longest."""
    with suppress(OSError):
        for path in folder.glob(f".*{ENDING}.*{_PARTIAL}"):
            if time.time() - path.stat().st_mtime > _ABANDONED_AFTER_S:
                path.unlink(missing_ok=True)
    if limit is None:
        return
    with suppress(OSError):
        caches = [(path, path.stat()) for path in folder.glob(f"*{ENDING}")]
        total = sum(told.st_size for _, told in caches)
        for path, told in sorted(caches, key=lambda cached: cached[1].st_mtime_ns):
            if total <= limit:
                break
            path.unlink(missing_ok=True)
            total -= told.st_size


@once
def _reader() -> str:
    """Identity of the code that reads: a cache written by other code does not count."""
    digest = hashlib.blake2b(version().encode(), digest_size=16)
    with suppress(OSError):
        here = Path(__file__).parent
        for path in sorted((*here.glob("*.py"), *here.glob("formats/**/*.py"))):
            digest.update(path.read_bytes())
    return digest.hexdigest()
