"""Read back what was recorded, without any code of ours."""

import gzip
import json
from pathlib import Path
from typing import Any


def events(path: Path) -> list[dict[str, Any]]:
    """All events of a compressed trace."""
    with gzip.open(path) as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return found


def names(path: Path, *, category: str | None = None) -> list[str]:
    """Names of the duration events, in the order of their start."""
    kept = [e for e in events(path) if e.get("ph") == "X" and category in (None, e.get("cat"))]
    return [str(e["name"]) for e in sorted(kept, key=lambda e: e["ts"])]


def steps(path: Path) -> list[str]:
    """The complete step ranges, in time order."""
    kept = [
        e
        for e in events(path)
        if str(e.get("name")).startswith("ProfilerStep#") and e["args"].get("finished") is not False
    ]
    return [str(e["name"]) for e in sorted(kept, key=lambda e: e["ts"])]
