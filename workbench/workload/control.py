"""What a step of the user's own can ask for, so that settings reach inside it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.autograd.profiler import record_function
from torch.optim import Optimizer

from workbench.settings import Precision
from workbench.workload.objective import split
from workbench.workload.placement import moved
from workbench.workload.precision import autocast
from workbench.workload.scale_log import ScaleLog
from workbench.workload.switches.gradients import clip, step_scaled

Phase = Literal["forward", "backward", "optimizer"]


class PhaseWatch(Protocol):
    """Is told where the phases of a step begin and end, on the thread that runs it."""

    def begin(self, phase: Phase) -> None:
        """The host comes to the phase."""

    def end(self, phase: Phase) -> None:
        """The host has handed out all work of the phase."""


class Control:
    """Given to a step that has a ``control`` argument; with it every setting can act.

    Example:
        def step(model, batch, control):
            control.zero_grad(optimizer)
            for part, share in control.micro_batches(batch):
                inputs, targets = control.to_device(part)
                with control.forward():
                    loss = loss_function(model(inputs), targets)
                control.backward(loss * share)
            control.optimizer_step(optimizer)

    Attributes:
        device: The device of the run.
        skipped_steps: Optimizer steps that fp16 scaling left out, because gradients overflowed;
            ``None`` where a fused optimizer decides that on the device.
        scales: The scale after each optimizer step.
        watch: Somebody who measures phases; ``None``: nobody.
        deferral: What ``no_sync`` does for a model that is spread over ranks in another way.
    """

    def __init__(
        self,
        *,
        device: torch.device,
        precision: Precision | None = None,
        scaler: GradScaler | None = None,
        accumulation: int = 1,
        non_blocking: bool = False,
        channels_last: bool = False,
        autocast_cache: bool | None = None,
        clip_norm: float | None = None,
        set_to_none: bool | None = None,
    ) -> None:
        self.device = device
        self.skipped_steps: int | None = 0
        self.watch: PhaseWatch | None = None
        self.deferral: Callable[[Any, bool], AbstractContextManager[Any]] | None = None
        self._precision = precision
        self._scaler = scaler
        self._accumulation = accumulation
        self._non_blocking = non_blocking
        self._channels_last = channels_last
        self._autocast_cache = autocast_cache
        self._clip_norm = clip_norm
        self._set_to_none = set_to_none
        self._unscaled: list[Optimizer] = []
        self.scales = ScaleLog()
        self._used: set[str] = set()

    def to_device(self, batch: Any) -> Any:
        """The batch on the device of the run, in the memory order and dtype of the run."""
        self._used.add("to_device")
        half = torch.bfloat16 if self._precision == "bf16_pure" else None

        def place(tensor: Tensor) -> Tensor:
            number = tensor.is_floating_point()
            last = self._channels_last and tensor.dim() == 4 and number
            return tensor.to(
                self.device,
                half if number else None,
                non_blocking=self._non_blocking,
                memory_format=torch.channels_last if last else torch.preserve_format,
            )

        return moved(batch, place)

    def micro_batches(self, batch: Any) -> Iterator[tuple[Any, float]]:
        """The parts of a batch under accumulation, each with its share of the samples."""
        self._used.add("micro_batches")
        if self._accumulation == 1:
            yield batch, 1.0
        else:
            yield from split(batch, self._accumulation)

    def no_sync(self, model: Any, *, last: bool) -> AbstractContextManager[Any]:
        """Leave gradients of all but the last micro-batch on their rank.

        Args:
            model: What is called; only one that has ranks has anything to leave out.
            last: Whether this is the last micro-batch of the step.
        """
        if self.deferral is not None:
            return self.deferral(model, last)
        if last or not isinstance(model, nn.Module):
            return nullcontext()
        no_sync = getattr(model, "no_sync", None)
        return no_sync() if callable(no_sync) else nullcontext()

    def forward(self) -> AbstractContextManager[Any]:
        """The region of forward pass and loss: autocast, and the range ``forward`` in the trace."""
        self._used.add("forward")
        region = autocast(self._precision, self.device, self._autocast_cache)
        return _Forward(region, self.watch)

    def scale(self, loss: Tensor) -> Tensor:
        """``loss`` times the factor of fp16 scaling, for a backward pass of one's own."""
        self._used.add("backward")
        scaled: Tensor = loss if self._scaler is None else self._scaler.scale(loss)
        return scaled

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of ``loss``, scaled for fp16, in the range ``backward``."""
        watch = self.watch
        if watch is not None:
            watch.begin("backward")
        with record_function("backward"):
            self.scale(loss).backward()  # type: ignore[no-untyped-call]
        if watch is not None:
            watch.end("backward")

    def unscale(self, *optimizers: Optimizer) -> None:
        """Divide gradients by the factor of fp16 scaling, to look at them before the step."""
        for optimizer in optimizers:
            if self._scaler is not None and not any(o is optimizer for o in self._unscaled):
                self._scaler.unscale_(optimizer)
                self._unscaled.append(optimizer)

    def clip(self, *optimizers: Optimizer) -> None:
        """Limit the gradients' norm as the settings say; :meth:`optimizer_step` does it, too."""
        if self._clip_norm is not None and optimizers:
            self.unscale(*optimizers)
            clip(optimizers, self._clip_norm)

    def optimizer_step(self, *optimizers: Optimizer) -> bool:
        """Clip and step the optimizers; for fp16 skip those whose gradients overflowed.

        Returns:
            Whether a schedule should go on: not when all of them were skipped.
        """
        self._used.add("optimizer_step")
        watch = self.watch
        if watch is not None:
            watch.begin("optimizer")
        self.clip(*optimizers)
        stepped: list[bool | None] = []
        for optimizer in optimizers:
            if self._scaler is None:
                optimizer.step()
            else:
                stepped.append(step_scaled(self._scaler, optimizer))
                self._count(stepped[-1])
        if self._scaler is not None and optimizers:
            self._scaler.update()
            self.scales.add(self._scaler, stepped=None if None in stepped else all(stepped))
            self._unscaled.clear()
        if watch is not None:
            watch.end("optimizer")
        return not stepped or any(one is not False for one in stepped)

    def _count(self, stepped: bool | None) -> None:
        if stepped is None or self.skipped_steps is None:
            self.skipped_steps = None
        elif not stepped:
            self.skipped_steps += 1

    def zero_grad(self, *optimizers: Optimizer | nn.Module) -> None:
        """Drop the gradients of optimizers (or modules), or fill them with zeros, as set."""
        self._used.add("zero_grad")
        for one in optimizers:
            if self._set_to_none is None:
                one.zero_grad()
            else:
                one.zero_grad(set_to_none=self._set_to_none)

    def unused(self) -> tuple[str, ...]:
        """What settings needed and a step of the user's own never called, a sentence each."""
        needed = (
            ("backward", self._scaler is not None, "precision='fp16' scaled no gradient"),
            (
                "forward",
                self._precision in {"bf16", "fp16", "fp8"},
                "no forward pass ran under autocast",
            ),
            ("micro_batches", self._accumulation > 1, "accumulation did not act"),
            ("optimizer_step", self._scaler is not None, "no scaled gradient was scaled back"),
            ("optimizer_step", self._clip_norm is not None, "clip_norm did not act"),
            ("zero_grad", self._set_to_none is not None, "set_to_none did not act"),
            ("to_device", self._non_blocking, "non_blocking did not act"),
        )
        return tuple(
            f"{effect}: the step never called control.{call}"
            for call, wanted, effect in needed
            if wanted and call not in self._used
        )


class _Forward(AbstractContextManager[None]):
    def __init__(self, region: AbstractContextManager[Any], watch: PhaseWatch | None) -> None:
        self._range = record_function("forward")
        self._autocast = region
        self._watch = watch

    def __enter__(self) -> None:
        if self._watch is not None:
            self._watch.begin("forward")
        self._range.__enter__()  # type: ignore[no-untyped-call]
        self._autocast.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._autocast.__exit__(*error)
        self._range.__exit__(*error)
        if self._watch is not None:
            self._watch.end("forward")
