"""Write a Run whole or not at all, and never over another one."""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from workbench.errors import RunError
from workbench.store.names import free_names, safe_name
from workbench.store.record import RECORD_NAME, RunRecord, encode

PARTIAL = ".partial"
"""Ending of a temporary folder, whose name is ``.<name>.<process>-<random>.partial``."""
STALE_AFTER_S = 60
ABANDONED_AFTER_S = 24 * 3600
LEAST_FREE_BYTES = 20_000_000


@dataclass(kw_only=True)
class NewRun:
    """A Run being written: put files into ``path`` and set ``record``."""

    parent: Path
    name: str
    """The name it will have, unless somebody takes it in the meantime."""
    path: Path
    record: RunRecord | None = None
    folder: Path | None = field(default=None, init=False)
    """Where it stands, once it is whole."""


@contextmanager
def new_run_folder(parent: str | Path, name: str) -> Iterator[NewRun]:
    """Write a Run into ``parent``: it appears when the block ends, or not at all.

    A name that is taken gets a number. A process that dies inside the block leaves a temporary
    folder, which later writes remove.

    Raises:
        RunError: the folder cannot be written; the message names the remedy.
    """
    parent, name = Path(parent), safe_name(name)
    check_writable(parent)
    with _explained(parent):
        parent.mkdir(parents=True, exist_ok=True)
        clean_stale(parent)
        path = temporary_path(parent, name)
        path.mkdir()
    new = NewRun(parent=parent, name=next(free_names(parent, name)), path=path)
    try:
        with _explained(parent):
            yield new
            if new.record is None:
                raise RunError(f"the Run {name!r} was closed without a record; nothing is written.")
            _publish(new, new.record, name)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def check_writable(parent: str | Path) -> None:
    """Refuse a place where a Run could not be written, before anything is measured."""
    _check_current_folder()
    with _explained(Path(parent)):
        there = _nearest(Path(parent).absolute())
    if not there.is_dir():
        raise RunError(f"{there} is not a folder: give another folder=... for the Run.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise RunError(
            f"{there} cannot be written: give folder=... a place that you may write to, "
            "for example in your home folder."
        )
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        raise RunError(
            f"the disk of {there} is full ({free / 1e6:.1f} MB free): "
            "free some space, or give folder=... on another disk."
        )


def _check_current_folder() -> None:
    """Torch and its compiler ask for the current folder, also where the Run goes elsewhere."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise RunError(
            "the current folder was deleted: change to one that is there with os.chdir(...)."
        ) from None


def _nearest(path: Path) -> Path:
    """``path``, or the nearest folder above it that exists; one that could not exist raises."""
    while path != path.parent:
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            path = path.parent
        else:
            break
    return path


def temporary_path(parent: Path, name: str) -> Path:
    """A name beside the Runs that tells which process writes there and that it is not whole."""
    return parent / f".{name}.{os.getpid()}-{secrets.token_hex(4)}{PARTIAL}"


def clean_stale(parent: Path) -> None:
    """Remove the temporary folders of processes that are gone."""
    for path in parent.glob(f".*{PARTIAL}"):
        with suppress(OSError):
            age = time.time() - path.stat().st_mtime
            if age > ABANDONED_AFTER_S or (age > STALE_AFTER_S and not _alive(path.name)):
                shutil.rmtree(path, ignore_errors=True)


def _publish(new: NewRun, record: RunRecord, name: str) -> None:
    for candidate in free_names(new.parent, name):
        new.record = msgspec.structs.replace(record, name=candidate)
        (new.path / RECORD_NAME).write_bytes(encode(new.record))
        try:
            new.path.rename(new.parent / candidate)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                continue  # somebody took the name since we looked
            raise
        new.name, new.folder = candidate, new.parent / candidate
        return


@contextmanager
def _explained(parent: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "free some space, or give folder=... on another disk"
        else:
            remedy = "give folder=... a place that you may write to"
        raise RunError(f"no Run could be written in {parent} ({error}): {remedy}.") from error


def _alive(name: str) -> bool:
    """Whether the process that a temporary folder's name tells still runs."""
    import psutil

    process = name.removesuffix(PARTIAL).rpartition(".")[2].partition("-")[0]
    return process.isdecimal() and psutil.pid_exists(int(process))
