"""Read a Run in a process of its own, so that a training beside it is not held up.

``python -m workbench.run.aside RUN OUT`` writes the findings of the folder RUN to the file OUT, and
leaves the event table beside the trace, where it is opened quickly from then on.
"""

import json
import os
import sys
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any


def read_aside(folder: Path, out: Path) -> None:
    """Write the findings of a Run as a list of plain dictionaries, without what the Run tells."""
    from workbench.run.source import load

    rows = [
        {f.name: getattr(each, f.name) for f in fields(each) if f.name != "origin"}
        for each in load(folder).findings
    ]
    out.write_text(json.dumps(rows, default=_plain))


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "keys"):
        return dict(value)
    raise TypeError(f"a finding holds a {type(value).__name__}, which no file of findings keeps")


if __name__ == "__main__":
    with suppress(OSError, AttributeError):
        os.nice(10)
    read_aside(Path(sys.argv[1]), Path(sys.argv[2]))
