"""The first batch of a workload's data, taken without moving any random state."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkloadError

if TYPE_CHECKING:
    from workbench.workload.workload import Workload

BATCH_SIZE = 32
"""Of a data set without a batch size, as everywhere else."""


def first_batch(work: Workload) -> Any:
    """One batch.

    Raises:
        WorkloadError: The data must be iterated to give one.
    """
    import torch
    from torch.utils.data import DataLoader, default_collate

    data, size, collate = work.data, work.batch_size or BATCH_SIZE, default_collate
    if isinstance(data, list | tuple) and data:
        return data[0]
    if isinstance(data, DataLoader):
        size, collate = data.batch_size or 1, data.collate_fn
        data = data.dataset
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        raise WorkloadError(
            "model_card(work, batch): give a batch, since taking one of this data would move it on."
        )
    before = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]):
            return collate([data[i] for i in range(min(size, len(data)))])
    finally:
        random.setstate(before)
