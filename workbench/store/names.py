"""Names of Run folders: safe on every file system, and never one that is taken."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.errors import RunError

LONGEST = 80
LONGEST_BYTES = 110
"""Encrypted home folders allow 143 bytes a name; a temporary folder's has an ending beside it."""


def safe_name(text: str, *, default: str = "run") -> str:
    """A folder name made of ``text``: one path part, no leading dot, at most 80 characters."""
    kept = "".join(c if c.isalnum() or c in "-_.=+" else "-" for c in text)
    short = kept.strip("-. ")[:LONGEST].encode()[:LONGEST_BYTES].decode(errors="ignore")
    return short.rstrip("-. ") or default


def as_folder(folder: Any, default: str) -> Path:
    """Where the user wants something kept, checked; ``default`` when it was left out.

    Raises:
        RunError: it is no path.
    """
    if folder is None:
        return Path(default)
    if not isinstance(folder, str | os.PathLike) or "\0" in str(folder):
        raise RunError(f"folder={folder!r} is not a path: give one as text, such as {default!r}.")
    return Path(folder)


def free_names(parent: Path, name: str) -> Iterator[str]:
    """``name``, ``name-2``, ``name-3`` and so on, without those that are taken in ``parent``."""
    number = 1
    while True:
        candidate = name if number == 1 else f"{name}-{number}"
        if not os.path.lexists(parent / candidate):
            yield candidate
        number += 1
