"""Small training loops to record."""

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

import workbench as wb


class Slow(Dataset[tuple[Tensor, Tensor]]):
    """Samples that take a while, for waits that can be told from noise."""

    def __init__(self, samples: int, seconds: float) -> None:
        self.samples = samples
        self.seconds = seconds

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        time.sleep(self.seconds)
        return torch.ones(4), torch.tensor(0)


def loader(batches: int, **options: Any) -> DataLoader[Any]:
    """A loader of so many tiny batches of 4."""
    data = TensorDataset(torch.randn(4 * batches, 4), torch.zeros(4 * batches, dtype=torch.long))
    return DataLoader(data, batch_size=4, **options)


def workload(data: Any = None, **options: Any) -> wb.Workload:
    """A linear classifier trained by SGD."""
    model = nn.Linear(4, 2)
    if "step" not in options:
        options = {
            "loss": functional.cross_entropy,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
            **options,
        }
    return wb.Workload(model, loader(8) if data is None else data, **options)


class Trainer:
    """A loop of the user's own: ``train(batch)`` is one step."""

    def __init__(self) -> None:
        self.model = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, batch: Any) -> None:
        self.optimizer.zero_grad()
        functional.cross_entropy(self.model(batch[0]), batch[1]).backward()
        self.optimizer.step()


def endless() -> Iterator[tuple[Tensor, Tensor]]:
    """Batches without an end or a length."""
    while True:
        yield torch.randn(4, 4), torch.zeros(4, dtype=torch.long)
