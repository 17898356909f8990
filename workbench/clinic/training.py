"""The healthy part of every planted fault: a small network and rows to train it on."""

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from workbench.workload import Workload

FEATURES = 64
CLASSES = 10
SAMPLES = 4096
"""More than a run of 20 steps reads, so that no epoch ends in it unless a fault needs that."""
BATCH = 16
STEP_S = 0.02
"""What the network takes, as if a device computed it and left the processors to the loader."""


class Classifier(nn.Module):
    """Classes from the first features of each sample, whatever else a batch holds.

    Args:
        seconds: How long it waits for a device that there need not be.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.layers = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))

    def forward(self, features: Tensor | Sequence[Tensor]) -> Tensor:
        """Scores of shape (samples, ``CLASSES``)."""
        if not isinstance(features, Tensor):
            features = torch.stack([part.reshape(len(part), -1)[:, 0] for part in features], 1)
        flat = features.flatten(1)[:, :FEATURES]
        answer: Tensor = self.layers(functional.pad(flat, (0, FEATURES - flat.shape[1])))
        time.sleep(self.seconds)
        return answer


class Rows(Dataset[Any]):
    """Seeded rows and classes in memory; reading one costs next to nothing.

    Args:
        seed: Decides every number.
        samples: How many.
        width: Numbers in a row.
    """

    def __init__(self, seed: int, samples: int = SAMPLES, width: int = FEATURES) -> None:
        chance = torch.Generator().manual_seed(seed)
        self.rows = torch.randn(samples, width, generator=chance)
        self.labels = torch.randint(CLASSES, (samples,), generator=chance)

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.labels)

    def __getitem__(self, index: int) -> Any:
        """One row and its class."""
        return self.rows[index], self.labels[index]


class Gathered(Rows):
    """The same, fetched with one index call a batch, so that loading costs next to nothing."""

    def __getitems__(self, indices: list[int]) -> Any:
        """All these rows, and their classes."""
        return self.rows[indices], self.labels[indices]


def as_it_is(batch: Any) -> Any:
    """Collate of what is a batch already."""
    return batch


def ready_batches(seed: int, batch: int) -> DataLoader[Any]:
    """A loader that no loop has to wait for."""
    return DataLoader(Gathered(seed, 4 * SAMPLES), batch, collate_fn=as_it_is)


def training(loader: DataLoader[Any], name: str, seed: int, seconds: float = STEP_S) -> Workload:
    """A workload that trains the network on this loader; chance stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Classifier(seconds)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Workload(model, loader, loss=functional.cross_entropy, optimizer=optimizer, name=name)
