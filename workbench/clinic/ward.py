"""The patients of the final clinic: planted faults under numbers that give nothing away."""

import dataclasses

from workbench.clinic.case import Case
from workbench.clinic.cases import case
from workbench.errors import WorkloadError

_BEDS = (
    "logging_every_step",
    "startup_each_epoch",
    "slow_collate",
    "garbage_collection",
    "retained_graph",
    "misaligned_matmul",
)


def patient(number: int) -> Case:
    """The patient of this number, from 1 on; its Run does not carry the name of its fault.

    Raises:
        WorkloadError: There is no such patient.
    """
    if number not in range(1, len(_BEDS) + 1):
        raise WorkloadError(f"there is no patient {number!r}; there are 1 to {len(_BEDS)}.")
    found = case(_BEDS[number - 1])
    return dataclasses.replace(found, name=f"patient {number}")
