"""What a step of the user's own can ask for, so that settings reach inside it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.autograd.profiler import record_function
from torch.optim import Optimizer

from workbench.settings import Precision
from workbench.workload.objective import split
from workbench.workload.placement import moved
from workbench.workload.precision import autocast


class Control:
    """Given to a step that has a ``control`` argument; with it every setting can act.

    Example:
        def step(model, batch, control):
            optimizer.zero_grad()
            for part, share in control.micro_batches(batch):
                inputs, targets = control.to_device(part)
                with control.forward():
                    loss = loss_function(model(inputs), targets)
                control.backward(loss * share)
            control.optimizer_step(optimizer)
    """

    def __init__(
        self,
        *,
        device: torch.device,
        precision: Precision | None,
        scaler: GradScaler | None,
        accumulation: int,
        non_blocking: bool,
        channels_last: bool,
    ) -> None:
        self.device = device
        self._precision = precision
        self._scaler = scaler
        self._accumulation = accumulation
        self._non_blocking = non_blocking
        self._channels_last = channels_last

    def to_device(self, batch: Any) -> Any:
        """The batch on the device of the run, its 4-d tensors in the memory order of the run."""

        def place(tensor: Tensor) -> Tensor:
            last = self._channels_last and tensor.dim() == 4 and tensor.is_floating_point()
            order = torch.channels_last if last else torch.preserve_format
            return tensor.to(self.device, non_blocking=self._non_blocking, memory_format=order)

        return moved(batch, place)

    def micro_batches(self, batch: Any) -> Iterator[tuple[Any, float]]:
        """The parts of a batch under accumulation, each with its share of the samples."""
        if self._accumulation == 1:
            yield batch, 1.0
        else:
            yield from split(batch, self._accumulation)

    def forward(self) -> AbstractContextManager[Any]:
        """The region of forward pass and loss: autocast, and the range ``forward`` in the trace."""
        return _Forward(self._precision, self.device)

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of ``loss``, scaled for fp16, in the range ``backward``."""
        with record_function("backward"):
            (loss if self._scaler is None else self._scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]

    def optimizer_step(self, *optimizers: Optimizer) -> None:
        """Step the optimizers; for fp16 skip those whose gradients overflowed."""
        for optimizer in optimizers:
            if self._scaler is None:
                optimizer.step()
            else:
                self._scaler.step(optimizer)
        if self._scaler is not None and optimizers:
            self._scaler.update()


class _Forward(AbstractContextManager[None]):
    def __init__(self, precision: Precision | None, device: torch.device) -> None:
        self._range = record_function("forward")
        self._autocast = autocast(precision, device)

    def __enter__(self) -> None:
        self._range.__enter__()  # type: ignore[no-untyped-call]
        self._autocast.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._autocast.__exit__(*error)
        self._range.__exit__(*error)
