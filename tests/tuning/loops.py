"""Small training loops whose settings differ in a known way."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

import workbench as wb


class Sleepy(Dataset[Any]):
    """Rows that take a while to load: what workers are for, on any machine."""

    def __init__(self, seconds: float, samples: int = 512) -> None:
        self.seconds = seconds
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.full((4,), float(index % 7)), torch.tensor(index % 2)


def network() -> nn.Module:
    """Two layers with dropout between them, the same numbers every time."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))


def rows(samples: int = 256) -> TensorDataset:
    """Seeded rows and classes."""
    chance = torch.Generator().manual_seed(5)
    return TensorDataset(
        torch.randn(samples, 4, generator=chance), torch.randint(2, (samples,), generator=chance)
    )


def training(data: Any = None, model: nn.Module | None = None, **options: Any) -> wb.Workload:
    """Adam on the network, over shuffled batches of 8."""
    model = network() if model is None else model
    data = DataLoader(rows(), batch_size=8, shuffle=True) if data is None else data
    return wb.Workload(
        model,
        data,
        loss=functional.cross_entropy,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        **options,
    )


class Watching(nn.Module):
    """A network that tells each batch to ``seen``, which may raise."""

    def __init__(self, seen: Callable[[Tensor], None]) -> None:
        super().__init__()
        self.layers = network()
        self.seen = seen

    def forward(self, batch: Tensor) -> Tensor:
        self.seen(batch)
        answer: Tensor = self.layers(batch)
        return answer


def state_bytes(work: wb.Workload) -> bytes:
    """Every number of model and optimizer, and the global random state."""
    parts = [tensor.detach().clone() for tensor in work.model.state_dict().values()]
    for optimizer in work.optimizers:
        for state in optimizer.state_dict()["state"].values():
            parts += [torch.as_tensor(value) for value in state.values()]
    parts.append(torch.get_rng_state())
    return b"".join(part.contiguous().view(-1).numpy().tobytes() for part in parts)
