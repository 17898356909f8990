"""What starts the ranks of a job: one small function for each way."""

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.parallel.mpirun import mpirun_arguments, mpirun_environment


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program to start, and what to add to its environment."""

    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


Launcher = Callable[[int, Path], Command]
"""From the number of ranks and the job's folder to the command that starts them here."""


def torchrun(world_size: int, folder: Path) -> Command:
    """``torch.distributed.run`` that meets over a file: no port is opened for it."""
    return Command(
        arguments=(
            *(sys.executable, "-P", "-m", "torch.distributed.run", "--nnodes", "1"),
            *("--nproc-per-node", str(world_size), "--max-restarts", "0"),
            *("--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file"),
            *("--rdzv-endpoint", str(folder / "rendezvous"), "--rdzv-id", folder.name),
            *("--local-addr", _own_address(), "--no-python", *_worker(folder)),
        )
    )


def _own_address() -> str:
    """Where this machine hears itself: machines without IPv4 have ``::1`` only."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError:
            return "::1"
    return "127.0.0.1"


_SESSION_FOLDERS = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
"""Where Open MPI 4 and 5 put their own files, so that they go with the job's."""


def mpirun(world_size: int, folder: Path) -> Command:
    """Open MPI's or MPICH's ``mpirun`` on this machine."""
    return Command(
        arguments=(*mpirun_arguments(world_size), *_worker(folder)),
        environment=mpirun_environment() | dict.fromkeys(_SESSION_FOLDERS, str(folder)),
    )


def _worker(folder: Path) -> tuple[str, ...]:
    """A rank's program, which imports from where the caller does: ``-m`` adds the folder of now."""
    return sys.executable, "-P", "-m", "workbench.parallel.worker", str(folder)


LAUNCHERS: dict[str, Launcher] = {"local": torchrun, "mpirun": mpirun}
