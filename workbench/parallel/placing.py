"""How many ranks, on which devices, over which back end, with how many threads."""

from typing import Any

import torch
from torch import nn

from workbench.errors import SettingError
from workbench.machine import usable_cpus
from workbench.parallel.companions import check_companions
from workbench.parallel.pipeline import check_pipeline
from workbench.settings import Parallel, Settings
from workbench.workload.applying import run_device
from workbench.workload.workload import Workload

RANKS_ON_CPU = 2
"""Own choice: ranks on one CPU show how it works and what travels; they seldom are faster."""
_OWN = {"cuda": "nccl", "xpu": "xccl", "cpu": "gloo"}


def place(work: Workload, settings: Settings, parallel: Parallel) -> dict[str, Any]:
    """``world_size``, ``backend``, ``threads`` and ``device`` of a job on this machine.

    Raises:
        SettingError: When this machine has too few devices or processors, or lacks the back end.
    """
    kind = run_device(work, settings).type
    if kind not in _OWN:
        raise SettingError(
            f"parallel={parallel.mode!r} cannot act on {kind}: torch has no back end for it. Use "
            "device='cpu' with it, or leave parallel out."
        )
    there = usable_cpus() if kind == "cpu" else int(getattr(torch, kind).device_count())
    what = "processors that this process may use" if kind == "cpu" else f"{kind} devices here"
    size = parallel.world_size or (RANKS_ON_CPU if kind == "cpu" else max(there, 2))
    if size > there:
        raise SettingError(
            f"parallel={parallel.mode!r} with {size} ranks cannot act: there are {there} {what}, "
            "and ranks that take turns on one would measure the turns. "
            + (f"Use world_size={there}." if there > 1 else "Leave parallel out.")
        )
    threads = settings.threads or (max(1, there // size) if kind == "cpu" else 1)
    if kind != "cpu":
        threads = settings.threads or max(1, usable_cpus() // size)
    return {
        "world_size": size,
        "backend": _backend(parallel, kind),
        "threads": threads,
        "device": kind,
    }


_INSTEAD = (
    "For ranks that MPI starts use launcher='mpirun' with backend='gloo'; to measure MPI itself, "
    "workbench.parallel.collectives(backends=('gloo', 'mpi4py'))."
)


def _backend(parallel: Parallel, kind: str) -> str:
    from torch import distributed

    if not distributed.is_available():
        raise SettingError("this build of torch has no torch.distributed: install one that has.")
    asked = parallel.backend or _OWN[kind]
    there: dict[str, Any] = {
        "gloo": distributed.is_gloo_available,
        "nccl": distributed.is_nccl_available,
        "mpi": distributed.is_mpi_available,
        "xccl": getattr(distributed, "is_xccl_available", lambda: False),
    }
    if not there[asked]():
        has = ", ".join(name for name, is_there in there.items() if is_there()) or "none"
        raise SettingError(
            f"backend={asked!r} is not in this build of torch, which has {has}. {_INSTEAD}"
        )
    if asked in ("nccl", "xccl") and kind != {"nccl": "cuda", "xccl": "xpu"}[asked]:
        raise SettingError(
            f"backend={asked!r} carries tensors of accelerators, and the model is on {kind}: "
            "use backend='gloo'."
        )
    if asked == "mpi":
        raise SettingError(
            "backend='mpi' is not taken for training: torch's usual builds lack it, and so it was "
            f"never tried here. {_INSTEAD}"
        )
    return asked


def check_workload(work: Workload, settings: Settings, parallel: Parallel) -> None:
    """Refuse what a mode cannot do, before any process starts.

    Raises:
        SettingError: Naming what to leave out or to use instead.
    """
    mode = parallel.mode
    if not isinstance(work.model, nn.Module):
        raise SettingError(
            f"parallel={mode!r} cannot act on a {type(work.model).__name__}: it needs a "
            "torch.nn.Module."
        )
    if mode == "pp":
        check_pipeline(work)
    check_companions(settings, parallel)
