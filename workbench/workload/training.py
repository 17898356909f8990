"""One workload under one set of settings, ready to be run step by step."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.profiler import record_function
from torch.optim import Optimizer

from workbench.errors import WorkloadError
from workbench.settings import Precision, Settings
from workbench.workload.batches import Batches
from workbench.workload.control import Control
from workbench.workload.inference_mode import outside_inference_mode
from workbench.workload.objective import infer, objective
from workbench.workload.placement import samples_in
from workbench.workload.precision import whole_step_autocast
from workbench.workload.refusals import refusals_explained
from workbench.workload.source import Source
from workbench.workload.worker_death import worker_death_explained
from workbench.workload.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a step runs: what was built from the workload and the settings."""

    work: Workload
    source: Source
    model: Any
    """What is called: the user's model, or its compiled twin."""
    device: torch.device
    control: Control
    precision: Precision | None
    moves_batches: bool
    """Whether batches are brought to the device before a step of the user's own."""
    settings: Settings = field(default_factory=Settings)
    compiler: Callable[[], Sequence[str]] = tuple
    """Tells what the compiler made of the model since the run began, for people."""
    run: Callable[["Plan", Any], Any] | None = None
    """How a step runs where it is not the usual way: in stages on several ranks."""


class Training:
    """A prepared workload: draw batches, run steps.

    One **step** is one batch of the loader and one optimizer step. With accumulation the batch is
    cut into that many micro-batches, each with its own forward and backward, so a step stays the
    same number of samples.

    Attributes:
        effective: What is in force, by name: batch size, workers, precision, device and so on,
            also where no setting asked for it.
        device: Where the model runs.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        effective: dict[str, Any],
        notes: list[str],
        batches: Batches | None = None,
    ) -> None:
        self.effective = effective
        self.device = plan.device
        self._decisions = notes
        self._control, self._settings, self._compiler = plan.control, plan.settings, plan.compiler
        self._own_step = plan.work.step is not None
        self._steps = 0
        self._plan: Plan | None = plan
        self._batches = Batches(plan.source) if batches is None else batches
        self._closes = batches is None
        self._run = plan.run or usual_run(plan)
        self._nominal = plan.source.batch_size
        self._samples = 0
        self._counted = 0

    def batches(self) -> Batches:
        """The endless stream of batches over epochs; every call gives the same stream.

        Raises:
            WorkloadError: From ``next()``, when the data gives no batch.
        """
        return self._batches

    def step(self, batch: Any) -> Tensor | None:
        """Run one step on one batch.

        Returns:
            The loss without its graph, where the step has one. Reading its value waits for the
            device.
        """
        if self._plan is None:
            raise WorkloadError("the training is over: prepare the workload again for steps.")
        samples = samples_in(batch)
        if samples is not None:
            self._samples += samples
            self._counted += 1
        with worker_death_explained(), refusals_explained(self._settings):
            value = self._run(self._plan, batch)
        self._steps += 1
        return value.detach() if isinstance(value, Tensor) else None

    def decided(self, *notes: str) -> None:
        """Add to what was decided for the user."""
        self._decisions.extend(notes)

    @property
    def control(self) -> Control:
        """What runs the phases of a step."""
        return self._control

    @property
    def model(self) -> Any:
        """What a step calls: the user's model, or its compiled twin; ``None`` when it is over."""
        return None if self._plan is None else self._plan.model

    @property
    def notes(self) -> list[str]:
        """What was decided for the user, and what the steps so far have shown."""
        shown = list(self.unused)
        skipped = self.skipped_steps
        if skipped:
            shown.append(
                f"{skipped} optimizer steps in {self._steps} steps were skipped: fp16 gradients "
                "overflowed, and the loss scale was halved each time"
            )
        return [*self._decisions, *shown, *self._compiler()]

    @property
    def unused(self) -> tuple[str, ...]:
        """Settings that did not act, because a step of the user's own never asked for them."""
        return self._control.unused() if self._own_step and self._steps else ()

    @property
    def skipped_steps(self) -> int | None:
        """Optimizer steps that fp16 scaling left out; ``None`` where only the device knows."""
        return self._control.skipped_steps

    def loss_scale(self) -> dict[str, Any] | None:
        """The scale of fp16 gradients so far, for ``run.json``; waits for the device."""
        return self._control.scales.to_json()

    @property
    def epochs(self) -> int:
        """Epochs that were read to their end."""
        return self._batches.epochs

    @property
    def samples_per_step(self) -> float | None:
        """Mean samples per step so far; the loader's batch size before the first step."""
        if self._counted:
            return self._samples / self._counted
        return None if self._nominal is None else float(self._nominal)

    def synchronize(self) -> None:
        """Wait until the device has done all its work; nothing to wait for on the CPU."""
        if self.device.type in {"cuda", "xpu"}:
            getattr(torch, self.device.type).synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()

    def close(self) -> None:
        """End the loader's workers and let go of the model and everything else."""
        self._plan = None
        self._run = _over
        if self._closes:
            self._batches.close()
        # What is still queued on the device would write over what is put back.
        self.synchronize()


def usual_run(plan: Plan) -> Callable[[Plan, Any], Any]:
    """What a step does in one process: train, infer, or the user's own."""
    work = plan.work
    if work.step is not None:
        return _own_step
    if not work.trains:
        return _infer
    if any(needs_closure(optimizer) for optimizer in work.optimizers):
        return _train_by_closure
    return _train


def _over(plan: Plan, batch: Any) -> Any:
    raise WorkloadError("the training is over.")


def _infer(plan: Plan, batch: Any) -> None:
    control = plan.control
    with torch.no_grad():
        for part, _ in control.micro_batches(_placed(plan, batch)):
            with control.forward():
                infer(plan.model, part)


def _train(plan: Plan, batch: Any) -> Tensor:
    work = plan.work
    with _learning():
        loss = _forward_and_backward(plan, _placed(plan, batch))
        if plan.control.optimizer_step(*work.optimizers):
            step_schedulers(work)
    return loss


def step_schedulers(work: Workload) -> None:
    """Let every scheduler go on by one optimizer step."""
    for scheduler in work.schedulers:
        try:
            scheduler.step()
        except Exception as error:
            error.add_note(
                f"{type(scheduler).__name__} is stepped after every step, warm-up included. One "
                "that ends, or counts epochs: leave scheduler out of the Workload."
            )
            raise


def _train_by_closure(plan: Plan, batch: Any) -> Tensor | None:
    """For optimizers that evaluate the model themselves, several times a step, such as LBFGS."""
    losses: list[Tensor] = []
    with _learning():
        placed = _placed(plan, batch)

        def closure() -> Tensor:
            loss = _forward_and_backward(plan, placed)
            losses[:] = [loss]
            return loss

        for optimizer in plan.work.optimizers:
            optimizer.step(cast("Callable[[], float]", closure))
        step_schedulers(plan.work)
    return losses[0] if losses else None


def _forward_and_backward(plan: Plan, batch: Any) -> Tensor:
    work, control = plan.work, plan.control
    control.zero_grad(*(work.optimizers or (work.model,)))
    parts = list(control.micro_batches(batch))
    total: Tensor | None = None
    for number, (part, share) in enumerate(parts, start=1):
        with control.no_sync(plan.model, last=number == len(parts)):
            with control.forward():
                loss = objective(plan.model, part, work.loss)
                loss = loss if share == 1 else loss * share
            control.backward(loss)
        total = loss.detach() if total is None else total + loss.detach()
    if total is None:
        raise WorkloadError("a batch holds no sample: drop empty batches from the data.")
    return total


def _own_step(plan: Plan, batch: Any) -> Any:
    work = plan.work
    if plan.moves_batches:
        batch = _placed(plan, batch)
    if work.step is None:
        raise AssertionError("only called for a step of the user's own")
    if work.takes_control:
        return work.step(plan.model, batch, control=plan.control)
    with whole_step_autocast(plan.precision, plan.device):
        return work.step(plan.model, batch)


def _placed(plan: Plan, batch: Any) -> Any:
    with record_function("workbench.to_device"):
        return plan.control.to_device(batch)


def _learning() -> AbstractContextManager[Any]:
    """Gradients on, even where the caller has switched them off."""
    stack = ExitStack()
    stack.enter_context(outside_inference_mode())
    stack.enter_context(torch.enable_grad())
    return stack


def needs_closure(optimizer: Optimizer) -> bool:
    """Whether ``optimizer`` can only step when it is given a function that evaluates the model."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty
