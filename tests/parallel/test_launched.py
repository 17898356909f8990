"""Which rank a process is, as torchrun, mpirun and srun say it."""

import pytest

from workbench.errors import SettingError
from workbench.parallel.launched import launched

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "TORCHELASTIC_RUN_ID": "abc",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "16",
    "SLURM_LOCALID": "1",
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_ID": "0",
}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (TORCHRUN, ("torchrun", 3, 8, 1, 2, "abc")),
        (MPIRUN, ("mpirun", 1, 2, 1, 2, None)),
        (SRUN, ("srun", 5, 16, 1, None, "77-0")),
        (SRUN | {"PMI_RANK": "5", "PMI_SIZE": "16"}, ("srun", 5, 16, 1, None, "77-0")),
        (SRUN | TORCHRUN, ("torchrun", 3, 8, 1, 2, "77-0")),
        ({"PMI_RANK": "0", "PMI_SIZE": "4"}, ("mpirun", 0, 4, None, None, None)),
    ],
    ids=["torchrun", "Open MPI", "srun", "srun with PMI", "torchrun inside srun", "MPICH"],
)
def test_the_launcher_that_names_the_rank_wins(
    environment: dict[str, str], told: tuple[object, ...]
) -> None:
    found = launched(environment)
    assert found is not None
    assert told == (
        *(found.by, found.rank, found.world_size, found.local_rank, found.local_size),
        found.job,
    )


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RANK": "1"},
        {"RANK": "x", "WORLD_SIZE": "2"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "77"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_ID": "0"},
    ],
    ids=["alone", "half", "no number", "shell of salloc", "one task"],
)
def test_a_process_alone_is_no_rank(environment: dict[str, str]) -> None:
    assert launched(environment) is None


def test_numbers_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingError, match="RANK=2 does not fit WORLD_SIZE=2"):
        launched({"RANK": "2", "WORLD_SIZE": "2"})
