"""What the benchmark of collectives measures, and which back ends are there to be measured."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.errors import SettingError

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
SIZES = (64, 1024, 16 * 1024, 256 * 1024, 2**20, 4 * 2**20, 16 * 2**20)
"""Bytes of the buffer: of all ranks together for all-gather and reduce-scatter, else of one."""
BACKENDS = ("gloo", "nccl", "xccl", "mpi", "mpi4py")
"""``mpi`` is torch's own back end of that name, ``mpi4py`` MPI without torch."""
MOST_BYTES = 2**32
ELEMENT = 4
"""Bytes of a float32."""
COUNTED = ((64 * 1024, 60), (2**20, 20), (16 * 2**20, 8), (MOST_BYTES, 3))
"""Up to so many bytes, so many repetitions are counted."""
WARM_UP = 10
"""Repetitions before them that are not counted: at most so many, and no more than those."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the ranks of one back end measure."""

    backend: str
    world_size: int
    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    threads: int


def repetitions(size: int) -> int:
    """How often a collective of this size is counted."""
    return next(count for most, count in COUNTED if size <= most)


def checked(
    backends: Sequence[str] | None, world_size: int, kinds: Sequence[str], sizes: Sequence[int]
) -> None:
    """Refuse what cannot be measured.

    Raises:
        SettingError: Naming what is possible.
    """
    for name, given, known in (("backends", backends or (), BACKENDS), ("kinds", kinds, KINDS)):
        odd = [each for each in given if each not in known]
        if odd or isinstance(given, str):
            raise SettingError(f"{name}={given!r}: give some of {', '.join(known)}, as a tuple.")
    if isinstance(world_size, bool) or not isinstance(world_size, int) or world_size < 2:
        raise SettingError(f"world_size={world_size!r} must be a whole number of at least 2.")
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in sizes)
    if not whole or not sizes or min(sizes) < ELEMENT or max(sizes) > MOST_BYTES:
        raise SettingError(f"sizes={sizes!r} must be bytes, whole numbers from 4 to {MOST_BYTES}.")


def absent(backend: str) -> str | None:
    """Why a back end cannot be measured here; ``None`` where it can."""
    if backend == "mpi4py":
        return _without_mpi()
    import torch
    from torch import distributed

    if not distributed.is_available():
        return "this torch was built without torch.distributed"
    if not distributed.is_backend_available(backend):
        return f"this torch was built without the {backend} back end"
    devices = {"nccl": torch.cuda, "xccl": getattr(torch, "xpu", None)}
    if backend in devices:
        count = 0 if (of := devices[backend]) is None else of.device_count()
        return None if count >= 2 else f"{backend} needs two devices, and there are {count}"
    return _without_mpirun() if backend == "mpi" else None


def _without_mpirun() -> str | None:
    if shutil.which("mpirun") is None:
        return "mpirun is not on PATH (Debian: apt-get install openmpi-bin)"
    return None


def _without_mpi() -> str | None:
    if (why := _without_mpirun()) is not None:
        return why
    if importlib.util.find_spec("mpi4py") is None:
        return 'mpi4py is not installed (pip install "torch-workbench[mpi]")'
    return None
