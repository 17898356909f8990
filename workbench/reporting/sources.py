"""What the cells of report notebooks open."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from workbench.reporting.privacy import PROJECT, private
from workbench.run.run import Run


def opened(path: str | None, *, hide_places: bool = True) -> Run | None:
    """The Run at a path; nothing where no path is given."""
    from workbench.run.source import open_run

    if path is None:
        return None
    run = open_run(path)
    return private(run) if hide_places else run


def made(workload: str) -> Any:
    """The workload that ``module:function`` of the project gives."""
    module, _, function = workload.partition(":")
    sys.path.insert(0, os.environ.get(PROJECT, str(Path.cwd())))
    return getattr(importlib.import_module(module), function)()
