"""``workbench lab``: the notebooks in JupyterLab."""

import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from workbench.errors import MissingExtraError


def lab(
    folder: Annotated[
        Path, typer.Argument(help="Where to work; the notebooks are copied there once.")
    ] = Path("workbench-notebooks"),
) -> None:
    """Open JupyterLab on a copy of the notebooks that come with the package."""
    try:
        import jupyterlab  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("jupyterlab", "notebook", "workbench lab") from None
    if not folder.exists():
        with resources.as_file(resources.files("workbench") / "_notebooks") as shipped:
            shutil.copytree(shipped, folder)
    command = [sys.executable, "-m", "jupyterlab", str(folder)]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # containers and CI run as root; Jupyter refuses otherwise
    raise typer.Exit(subprocess.run(command, check=False).returncode)  # noqa: S603
