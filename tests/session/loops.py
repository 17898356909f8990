"""Small loops that say what they saw."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from workbench.workload import Workload


class Numbered(Dataset[Any]):
    """Samples that carry their own number."""

    def __init__(self, length: int = 48) -> None:
        self.length = length

    def before(self, index: int) -> None:
        """Called before a sample is read."""

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.before(index)
        return torch.full((4,), float(index)) / self.length, torch.tensor([float(index)])


class Slow(Numbered):
    """Samples that take a while, and are their own number."""

    def __init__(self, seconds: float, length: int = 64) -> None:
        super().__init__(length)
        self.seconds = seconds

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(self.seconds)
        return torch.ones(4), torch.tensor(index)


class Counting(IterableDataset[torch.Tensor]):
    """Can only be read from its beginning: 0, 1, 2 and so on."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.arange(100.0))


class Net(nn.Module):
    """A little of everything that has state: weights, running statistics, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2))
        self.head = nn.Linear(8, 1)
        self.dtypes: list[torch.dtype] = []
        self.sizes: list[int] = []

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.body(inputs)
        self.dtypes.append(hidden.dtype)
        self.sizes.append(len(inputs))
        out: torch.Tensor = self.head(hidden)
        return out


class Seen:
    """A loss that remembers which samples it was given, in order."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.losses: list[float] = []
        self.before: Callable[[torch.Tensor], None] = lambda _: None

    def __call__(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        self.before(target)
        loss = F.mse_loss(output.float(), target / 48)
        self.numbers += [int(n) for n in target.flatten()]
        self.losses.append(float(loss.detach()))
        return loss


class Remembered:
    """A loop that can be asked what it saw; stopping puts its lists back, too: ask before."""

    def __init__(self, *, batch_size: int = 4, workers: int = 0, **loader: Any) -> None:
        torch.manual_seed(7)
        self.model = Net()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.seen = Seen()
        generator = torch.Generator().manual_seed(3)
        self.loader = DataLoader(
            Numbered(),
            batch_size=batch_size,
            shuffle=True,
            num_workers=workers,
            generator=generator,
            **loader,
        )
        self.work = Workload(
            self.model, self.loader, loss=self.seen, optimizer=self.optimizer, name="loop"
        )
