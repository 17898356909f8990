"""Names of Run folders: safe on every file system, and never one that is taken."""

import os
from collections.abc import Iterator
from pathlib import Path

LONGEST = 80


def safe_name(text: str, *, default: str = "run") -> str:
    """A folder name made of ``text``: one path part, no leading dot, at most 80 characters."""
    kept = "".join(c if c.isalnum() or c in "-_.=+" else "-" for c in text)
    return kept.strip("-. ")[:LONGEST].rstrip("-. ") or default


def free_names(parent: Path, name: str) -> Iterator[str]:
    """``name``, ``name-2``, ``name-3`` and so on, without those that are taken in ``parent``."""
    number = 1
    while True:
        candidate = name if number == 1 else f"{name}-{number}"
        if not os.path.lexists(parent / candidate):
            yield candidate
        number += 1
