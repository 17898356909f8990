"""Faults in what one sample or one batch costs, wherever it is made."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from workbench.clinic.training import BATCH, FEATURES, SAMPLES, Rows, as_it_is, training
from workbench.clinic.work import burn, far_read
from workbench.workload import Workload

DECODE_S = 0.0015
"""About a JPEG of 256 pixels, decoded, resized and augmented in Python."""
LATENCY_S = 0.002
"""About one request to a file server in the same building."""
LINES = 48
"""Lists of numbers in a sample that collate goes through."""
COLUMNS = 6
TABLE_BATCH = 128
"""Rows that cost microseconds each, as in the report that the table is modelled on
(pytorch/pytorch #10260)."""


class Decoded(Rows):
    """Every sample costs processor time in Python."""

    def __init__(self, seed: int, seconds: float) -> None:
        super().__init__(seed)
        self.seconds = seconds

    def __getitem__(self, index: int) -> Any:
        """One row and its class, after the work."""
        burn(self.seconds)
        return super().__getitem__(index)


class Stored(Rows):
    """Every sample is read from storage that takes its time to answer."""

    def __init__(self, seed: int, seconds: float) -> None:
        super().__init__(seed)
        self.seconds = seconds

    def __getitem__(self, index: int) -> Any:
        """One row and its class, from bytes that were read."""
        row, label = super().__getitem__(index)
        data = far_read(row.numpy().tobytes(), self.seconds)
        return torch.from_numpy(np.frombuffer(data, dtype=np.float32).copy()), label


class Lists(Rows):
    """Samples as Python lists, a step away from a tensor."""

    def __getitem__(self, index: int) -> Any:
        """Lists of numbers, and the class."""
        row, label = super().__getitem__(index)
        return row.reshape(-1, FEATURES).tolist(), int(label)


def number_by_number(samples: list[Any]) -> tuple[Tensor, Tensor]:
    """Collate that builds a batch from nested lists, one number after the other."""
    rows = [[[float(number) for number in line] for line in lines] for lines, _ in samples]
    return torch.tensor(rows), torch.tensor([label for _, label in samples])


class Arrays(Rows):
    """Samples as arrays, which are a step away from a tensor."""

    def __getitem__(self, index: int) -> Any:
        """An array, and the class."""
        return self.rows[index].numpy(), int(self.labels[index])


def list_of_arrays(samples: list[Any]) -> tuple[Tensor, Tensor]:
    """Collate that hands a list of arrays to torch, which reads it number by number."""
    with warnings.catch_warnings():  # torch warns, and few people read it
        warnings.simplefilter("ignore", UserWarning)
        rows = torch.tensor([row for row, _ in samples])
    return rows, torch.tensor([label for _, label in samples])


class Table(Rows):
    """A table in memory, whose columns are gathered row by row."""

    def __getitem__(self, index: int) -> Any:
        """The columns of one row, and the class."""
        return [column[index] for column in self.rows.T], self.labels[index]


def slow_decode(seed: int, scale: float) -> Workload:
    """Each sample is decoded in the training process."""
    loader: DataLoader[Any] = DataLoader(Decoded(seed, DECODE_S * scale), BATCH)
    return training(loader, "slow decode", seed)


def slow_storage(seed: int, scale: float) -> Workload:
    """Each sample waits for storage in the training process."""
    loader: DataLoader[Any] = DataLoader(Stored(seed, LATENCY_S * scale), BATCH)
    return training(loader, "slow storage", seed)


def slow_collate(seed: int, scale: float) -> Workload:
    """Samples are cheap; putting them together is not."""
    if scale == 0:
        return training(DataLoader(Rows(seed, 1024), BATCH), "slow collate", seed)
    width = max(1, round(LINES * scale)) * FEATURES
    loader: DataLoader[Any] = DataLoader(
        Lists(seed, 1024, width), BATCH, collate_fn=number_by_number
    )
    return training(loader, "slow collate", seed)


def list_to_tensor(seed: int, scale: float) -> Workload:
    """A batch is made of a list of arrays, which nobody has stacked."""
    if scale == 0:
        return training(DataLoader(Rows(seed, 1024), BATCH), "list to tensor", seed)
    width = max(1, round(2 * LINES * scale)) * FEATURES
    loader: DataLoader[Any] = DataLoader(
        Arrays(seed, 1024, width), BATCH, collate_fn=list_of_arrays
    )
    return training(loader, "list to tensor", seed)


def row_wise_table(seed: int, scale: float) -> Workload:
    """Thousands of rows that cost microseconds each, gathered one by one."""
    width = max(1, round(COLUMNS * scale))
    data = Table(seed, 8 * SAMPLES, width) if scale else WholeBatches(seed, 8 * SAMPLES, COLUMNS)
    collate = None if scale else as_it_is
    loader: DataLoader[Any] = DataLoader(data, TABLE_BATCH, collate_fn=collate)
    return training(loader, "row-wise table", seed)


class WholeBatches(Table):
    """The same table, fetched with one index call a batch."""

    def __getitems__(self, indices: list[int]) -> Any:
        """The columns of all these rows, and their classes."""
        return list(self.rows[indices].T), self.labels[indices]
