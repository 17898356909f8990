"""Which rank this process is, as whoever launched it says: torchrun, srun or mpirun."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.errors import SettingError

By = Literal["torchrun", "mpirun", "srun"]
_NAMES: tuple[tuple[By, str, str, str, str], ...] = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    (
        "mpirun",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    ("mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
"""Rank, world size, rank and ranks on this machine; the first launcher that names both wins
(srun names ``PMI_*`` as well)."""

_SAID = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK"),
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"),
)


def without_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for processes that get a rank of their own: without torchrun's variables."""
    return {name: value for name, value in environment.items() if name not in _SAID}


@dataclass(frozen=True, kw_only=True)
class Launched:
    """A rank of a job that somebody launched."""

    rank: int
    world_size: int
    local_rank: int | None
    local_size: int | None
    """Ranks on this machine; ``None`` where the launcher does not say it."""
    by: By
    job: str | None = None
    """What is the same on all ranks of the job and of no other: Slurm's or torchrun's number."""


def launched(environment: Mapping[str, str] | None = None) -> Launched | None:
    """The rank that the environment tells; ``None`` for a process alone.

    A shell inside an allocation of Slurm (``salloc``) has one task and is nobody's rank.

    Raises:
        SettingError: The launcher's variables contradict each other.
    """
    env = os.environ if environment is None else environment
    for by, rank_name, size_name, local_name, local_size_name in _NAMES:
        rank, size = _number(env, rank_name), _number(env, size_name)
        if rank is None or size is None:
            continue
        if not 0 <= rank < size:
            raise SettingError(
                f"{rank_name}={rank} does not fit {size_name}={size}: launch the job anew, "
                "or unset both in a process that is no rank."
            )
        if by == "srun" and (size == 1 or "SLURM_STEP_ID" not in env):
            continue
        return Launched(
            rank=rank,
            world_size=size,
            local_rank=_number(env, local_name),
            local_size=_number(env, local_size_name),
            by=by,
            job=_job(env),
        )
    return None


def _number(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name, "")
    return int(text) if text.isdecimal() else None


def _job(env: Mapping[str, str]) -> str | None:
    parts = [env[name] for name in ("SLURM_JOB_ID", "SLURM_STEP_ID") if name in env]
    if parts:
        return "-".join(parts)
    run = env.get("TORCHELASTIC_RUN_ID", "none")
    return run if run != "none" else env.get("OMPI_MCA_ess_base_jobid")
