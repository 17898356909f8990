"""Faults of the model and its optimizer: work in pieces or sizes that the machine does not like."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from workbench.clinic.loops import network
from workbench.clinic.training import BATCH, CLASSES, FEATURES, Gathered, ready_batches
from workbench.workload import Workload

TINY, USUAL = 2, 128
"""Samples in a batch."""
CALLS = 12
"""How often one layer is used in a forward pass, as in a loop over time."""
ODD, EVEN = 509, 512
"""A prime number of features, and the multiple of 64 beside it."""
MANY_LAYERS = 40
LENGTHS = 3
"""Lengths of sentences that a loop without padding meets."""
SHORTEST = 8


class Recurring(nn.Module):
    """One layer used again and again, under autocast.

    Args:
        apart: Whether each use has a region of its own, so that no cast is kept for the next.
    """

    def __init__(self, apart: bool) -> None:
        super().__init__()
        self.apart = apart
        self.layer = nn.Linear(EVEN, EVEN)
        self.last = nn.Linear(EVEN, CLASSES)

    def forward(self, features: Tensor) -> Tensor:
        """Scores of shape (samples, ``CLASSES``)."""
        features = features.repeat(1, EVEN // FEATURES)
        kind = features.device.type
        with nullcontext() if self.apart else torch.autocast(kind, torch.bfloat16):
            for _ in range(CALLS):
                with torch.autocast(kind, torch.bfloat16) if self.apart else nullcontext():
                    features = torch.relu(self.layer(features))
            with torch.autocast(kind, torch.bfloat16) if self.apart else nullcontext():
                scores: Tensor = self.last(features)
        return scores.float()


class Half(nn.Module):
    """A network of this width, in bf16 whatever the settings say."""

    def __init__(self, seed: int, width: int) -> None:
        super().__init__()
        self.layers = network(seed, width=width)

    def forward(self, features: Tensor) -> Tensor:
        """Scores of shape (samples, ``CLASSES``)."""
        with torch.autocast(features.device.type, torch.bfloat16):
            scores: Tensor = self.layers(features)
        return scores.float()


class Sentences:
    """Collate into sequences of several lengths, in turn."""

    def __init__(self, lengths: int) -> None:
        self.lengths = lengths
        self.batches = 0

    def __call__(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Tensors of shape (samples, length, features), and classes."""
        length = SHORTEST * (1 + self.batches % self.lengths)
        self.batches += 1
        return batch[0].unsqueeze(1).repeat(1, length, 1), batch[1]


class Reader(nn.Module):
    """Classes from the mean over a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        """Scores of shape (samples, ``CLASSES``)."""
        scores: Tensor = self.last(torch.relu(self.layer(words)).mean(1))
        return scores


def _loop(model: nn.Module, loader: Any, name: str, **how: Any) -> Workload:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, **(how or {"fused": True}))
    loss = functional.cross_entropy
    return Workload(model, loader, loss=loss, optimizer=optimizer, name=name)


def _seeded(seed: int, kind: Any, *arguments: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(*arguments)


def tiny_batch(seed: int, scale: float) -> Workload:
    """A step handles next to no samples, and launches as much as it would for many."""
    batch = USUAL if scale == 0 else max(1, round(TINY / min(scale, TINY)))
    return _loop(network(seed, 8), ready_batches(seed, batch), "tiny batch")


def repeated_casts(seed: int, scale: float) -> Workload:
    """Autocast begins anew for every use of a layer, and casts its weights every time."""
    model = _seeded(seed, Recurring, scale > 0)
    return _loop(model, ready_batches(seed, BATCH), "repeated casts")


def misaligned_matmul(seed: int, scale: float) -> Workload:
    """Layers of a prime number of features, in half precision."""
    model = Half(seed, ODD if scale else EVEN)
    return _loop(model, ready_batches(seed, BATCH * 4), "misaligned products")


def single_tensor_optimizer(seed: int, scale: float) -> Workload:
    """Many small parameters, which the optimizer updates one after the other."""
    layers = max(2, round(MANY_LAYERS * (scale or 1)))
    way = {"foreach": False} if scale else {"fused": True}
    model = network(seed, layers, FEATURES)
    return _loop(model, ready_batches(seed, BATCH), "single-tensor optimizer", **way)


def recompiles(seed: int, scale: float) -> Workload:
    """Batches whose length keeps changing, for a model that is compiled for each."""
    lengths = max(2, round(LENGTHS * scale)) if scale else 1
    data = Gathered(seed)
    loader: DataLoader[Any] = DataLoader(data, BATCH, collate_fn=Sentences(lengths))
    return _loop(_seeded(seed, Reader), loader, "recompiles")
