"""Hand a Run's traces to other tools."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import RunError


def to_tensorboard(traces: Sequence[Path], folder: Path, *, name: str) -> Path:
    """Copy traces as ``<name>/<worker>.pt.trace.json[.gz]`` and return that folder."""
    if not traces:
        raise RunError(f"{name!r} holds no trace file to copy.")
    target = folder / "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    if target.exists():
        raise RunError(f"{target} is there already: give another folder, or delete it first.")
    target.mkdir(parents=True)
    for number, trace in enumerate(traces):
        ending = ".json.gz" if trace.name.endswith(".gz") else ".json"
        shutil.copyfile(trace, target / f"worker{number}.pt.trace{ending}")
    return target
