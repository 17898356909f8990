"""Faults of the loop around the model: what it reads, keeps, writes and cleans up in every step."""

import gc
import json
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workbench.clinic.training import BATCH, CLASSES, FEATURES, ready_batches
from workbench.workload import Control, Workload

WIDTH = 256
LAYERS = 4
READS = 16
"""Numbers that the loop reads in a step: the loss, and a norm or two for each layer."""
OBJECTS = 20_000
"""Beside what torch and its modules hold, which is ten times as much."""
COLLECT_EVERY = 4
LOGGED = 20_000
"""Numbers that are written out in a step, as a histogram of the weights has them."""
DIGITS = 6


def network(seed: int, layers: int = LAYERS, width: int = WIDTH) -> nn.Sequential:
    """Linear layers with ReLU between them; chance stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parts: list[nn.Module] = [nn.Linear(FEATURES, width), nn.ReLU()]
        for _ in range(layers - 2):
            parts += [nn.Linear(width, width), nn.ReLU()]
        return nn.Sequential(*parts, nn.Linear(width, CLASSES))


class Step:
    """A plain training step; what a fault adds comes after it.

    Args:
        optimizer: The optimizer of the model that is trained.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    def __call__(self, model: nn.Module, batch: Any, control: Control) -> Tensor:
        """Train on the batch."""
        control.zero_grad(self.optimizer)
        inputs, targets = control.to_device(batch)
        with control.forward():
            loss = functional.cross_entropy(model(inputs), targets)
        control.backward(loss)
        control.optimizer_step(self.optimizer)
        self.after(model, loss)
        return loss.detach()

    def after(self, model: nn.Module, loss: Tensor) -> None:
        """What the fault does once the optimizer has stepped."""


class Reading(Step):
    """Reads so many numbers in every step, each of which waits for the device."""

    def __init__(self, optimizer: torch.optim.Optimizer, reads: int) -> None:
        super().__init__(optimizer)
        self.reads = reads
        self.seen: list[float] = []

    def after(self, model: nn.Module, loss: Tensor) -> None:
        """The loss, and norms of gradients."""
        weights = list(model.parameters())
        self.seen = [loss.item()] if self.reads else []
        for number in range(self.reads - 1):
            gradient = weights[number % len(weights)].grad
            self.seen.append(0.0 if gradient is None else gradient.norm().item())


class Keeping(Step):
    """Keeps the losses of a second pass, each with all that its backward pass would need."""

    def __init__(self, optimizer: torch.optim.Optimizer, kept: int) -> None:
        super().__init__(optimizer)
        self.kept = kept
        self.history: list[Tensor] = []

    def __call__(self, model: nn.Module, batch: Any, control: Control) -> Tensor:
        """Train on the batch, then judge the model on the same samples."""
        loss = super().__call__(model, batch, control)
        inputs, targets = control.to_device(batch)
        for _ in range(max(1, self.kept)):
            judged = functional.cross_entropy(model(inputs), targets)
            self.history.append(judged if self.kept else judged.detach())
        return loss


class Collecting(Step):
    """Has Python look for garbage after every few steps, through everything that it holds."""

    def __init__(self, optimizer: torch.optim.Optimizer, objects: int) -> None:
        super().__init__(optimizer)
        self.held = [[number] for number in range(objects)]
        self.steps = 0

    def after(self, model: nn.Module, loss: Tensor) -> None:
        """Free memory, so it is hoped."""
        self.steps += 1
        if self.held and self.steps % COLLECT_EVERY == 0:
            gc.collect()


class Logging(Step):
    """Writes this many weights out in every step, number by number."""

    def __init__(self, optimizer: torch.optim.Optimizer, numbers: int) -> None:
        super().__init__(optimizer)
        self.numbers = numbers
        self.line = ""

    def after(self, model: nn.Module, loss: Tensor) -> None:
        """One line of JSON; where it goes does not matter."""
        if self.numbers:
            weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
            plain = weights.tolist() * (1 + self.numbers // len(weights))
            self.line = json.dumps([round(value, DIGITS) for value in plain[: self.numbers]])


def _training(kind: type[Step], amount: int, name: str, seed: int) -> Workload:
    model = network(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = kind(optimizer, amount)  # type: ignore[call-arg]
    data = ready_batches(seed, 8 * BATCH)
    return Workload(model, data, step=step, optimizer=optimizer, name=name)


def sync_in_loop(seed: int, scale: float) -> Workload:
    """Numbers are read from the device in every step."""
    return _training(Reading, round(READS * scale), "sync in the loop", seed)


def retained_graph(seed: int, scale: float) -> Workload:
    """Losses are kept from step to step with the graphs behind them."""
    return _training(Keeping, round(scale + 0.4), "retained graph", seed)


def garbage_collection(seed: int, scale: float) -> Workload:
    """Python collects garbage every few steps, which the loop asks for."""
    return _training(Collecting, round(OBJECTS * scale), "garbage collection", seed)


def logging_every_step(seed: int, scale: float) -> Workload:
    """Weights are written out in every step."""
    return _training(Logging, round(LOGGED * scale), "logging every step", seed)
