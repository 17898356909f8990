"""A file that appears whole or not at all, and never in the place of another one."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import TraceError

ENDINGS = (".json", ".json.gz")
_COMPRESSION = 2


@contextmanager
def whole_file(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Write to a temporary name, compressed when the name ends in ``.gz``; rename at the end.

    Raises:
        TraceError: The name is taken or has another ending, or the file cannot be written.
    """
    check_target(path, overwrite=overwrite)
    partial = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        with _opened(partial, compressed=path.name.endswith(".gz")) as file:
            yield file
        check_target(path, overwrite=overwrite)
        partial.replace(path)
    except OSError as error:
        raise TraceError(_explained(path, error)) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a place where a trace cannot or must not be written, before anything is read."""
    if not path.name.lower().endswith(ENDINGS) or path.name in ENDINGS:
        raise TraceError(
            f"{path}: the name of a trace must end in .json or .json.gz (compressed); give another."
        )
    if path.is_dir():
        raise TraceError(f"{path} is a folder: give the name of a file in it.")
    if not path.parent.is_dir():
        raise TraceError(f"{path.parent} is no folder: make it first, or write elsewhere.")
    if path.exists() and not overwrite:
        raise TraceError(
            f"{path} is there already: give another name, or ask to replace it "
            "(overwrite=True, --force)."
        )


@contextmanager
def _opened(partial: Path, *, compressed: bool) -> Iterator[BinaryIO]:
    from isal import igzip

    with partial.open("xb") as raw:
        if not compressed:
            yield raw
            return
        packed: Any = igzip.IGzipFile("", "wb", _COMPRESSION, raw, 0)  # type: ignore[no-untyped-call]
        with packed:
            yield packed


def _explained(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some space, or write to another disk"
    else:
        remedy = "write to a place that you may write to"
    return f"{path} could not be written ({error.strerror or error}): {remedy}."
