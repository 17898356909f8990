"""Faults that need two ranks to show."""

import time
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workbench.clinic.loops import network
from workbench.clinic.training import BATCH, ready_batches
from workbench.workload import Workload

PARTS = 4
"""Micro-batches in a step."""
WIDE = 512
"""Features of layers whose gradients are a megabyte each."""
LATE_S = 0.03
"""How much longer one rank takes for a step, as on a machine that something else keeps busy."""


def rank() -> int:
    """Number of this process among the ranks; 0 where there are none."""
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if there else 0


class Accumulating:
    """A step over micro-batches.

    Args:
        optimizer: The optimizer of the model that is trained.
        always: Whether gradients are averaged after each of them, and not after the last alone.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, always: bool) -> None:
        self.optimizer = optimizer
        self.always = always

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        """Train on the batch."""
        self.optimizer.zero_grad()
        inputs, targets = (part.chunk(PARTS) for part in batch)
        loss = torch.zeros(())
        for number, (some, wanted) in enumerate(zip(inputs, targets, strict=True), start=1):
            no_sync = getattr(model, "no_sync", nullcontext)
            now = self.always or number == len(inputs)
            with nullcontext() if now else no_sync():
                loss = functional.cross_entropy(model(some), wanted) / len(inputs)
                loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()


class Uneven(nn.Module):
    """A network that takes longer on the last rank of two.

    Args:
        seed: Decides every weight.
        seconds: How much longer.
    """

    def __init__(self, seed: int, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.layers = network(seed)

    def forward(self, features: Tensor) -> Tensor:
        """Scores of shape (samples, classes)."""
        if rank() == 1:
            time.sleep(self.seconds)
        scores: Tensor = self.layers(features)
        return scores


def extra_syncs(seed: int, scale: float) -> Workload:
    """Gradients are averaged after every micro-batch, though only their sum counts."""
    model = network(seed, width=WIDE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = ready_batches(seed, PARTS * BATCH)
    step = Accumulating(optimizer, scale > 0)
    return Workload(model, loader, step=step, optimizer=optimizer, name="extra syncs")


def straggler(seed: int, scale: float) -> Workload:
    """One of two ranks comes late to every collective."""
    model = Uneven(seed, LATE_S * scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = ready_batches(seed, 2 * BATCH)
    loss = functional.cross_entropy
    return Workload(model, loader, loss=loss, optimizer=optimizer, name="straggler")
