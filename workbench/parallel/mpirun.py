"""``mpirun`` as a launcher: what starts so many ranks on this machine, also as root.

Open MPI refuses root unless told otherwise, more ranks than cores unless told otherwise, and binds
each rank to one core, which takes the others from its loader. Ranks take their number from
``OMPI_COMM_WORLD_*`` (``workbench.parallel.launched``).
"""

from __future__ import annotations

import os
import shutil
import subprocess

from workbench.errors import SettingError

INSTALL = "Debian: apt-get install openmpi-bin; conda: conda install openmpi"
ASK_S = 20


def mpirun_arguments(world_size: int) -> tuple[str, ...]:
    """The command up to the program that every rank runs.

    Raises:
        SettingError: There is no mpirun.
    """
    found = shutil.which("mpirun")
    if found is None:
        raise SettingError(f"mpirun is not on PATH: install it ({INSTALL}), or use torchrun.")
    arguments = [found, "-np", str(world_size)]
    if "Open MPI" in _version(found):
        arguments += ["--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            arguments.append("--allow-run-as-root")
    return tuple(arguments)


def mpirun_environment() -> dict[str, str]:
    """What mpirun needs beside the arguments: ranks that wait leave their processor to others."""
    return {"OMPI_MCA_mpi_yield_when_idle": "1"}


def _version(path: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - what PATH calls mpirun
            [path, "--version"], capture_output=True, text=True, timeout=ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
