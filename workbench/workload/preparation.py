"""Apply settings to a workload for the length of a block, and put everything back after it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from types import TracebackType

import torch

from workbench.settings import Settings
from workbench.units import bytes_text
from workbench.workload.applying import apply, run_device
from workbench.workload.async_exceptions import Sent
from workbench.workload.batches import Batches
from workbench.workload.checks import check_copies, check_pinning, check_reach
from workbench.workload.effective import effective_values
from workbench.workload.inference_mode import outside_inference_mode
from workbench.workload.interrupts import Deferred
from workbench.workload.own_autocast import own_autocast
from workbench.workload.placement import settle_optimizers, start_device
from workbench.workload.precision import check_precision
from workbench.workload.rates import rate_rule
from workbench.workload.snapshot import Snapshot
from workbench.workload.source import Source, open_source
from workbench.workload.switches.casting import match_parameters
from workbench.workload.switches.reach import training_parts
from workbench.workload.training import Plan, Training, needs_closure
from workbench.workload.workload import Workload


def prepare(
    work: Workload, settings: Settings | None = None, *, keep_training: bool = False
) -> AbstractContextManager[Training]:
    """Make a workload ready to run step by step under settings.

    On leaving the block, also through an error or an interrupt, everything is as it was before:
    weights, buffers, gradients, modes and hooks of the model, the state of optimizers, schedulers
    and scalers, whatever else a step of the user's own can reach, the loader and its generators,
    random states, flags and environment. Worker processes are gone.

    Args:
        work: What to run; its objects are never handed to anyone else.
        settings: What to change for the run.
        keep_training: Leave weights, buffers, optimizer and scheduler as training left them;
            everything else is put back.

    Returns:
        A context manager that gives a :class:`Training`.

    Raises:
        SettingError: On entering, when a setting cannot act on this workload or machine.
        WorkloadError: On entering, when the device is missing or the data cannot be used.
    """
    return _Preparation(work, settings or Settings(), keep_training=keep_training)


class _Preparation(AbstractContextManager[Training]):
    def __init__(self, work: Workload, settings: Settings, *, keep_training: bool) -> None:
        self._work: Workload | None = work
        self._settings = settings
        self._keep_training = keep_training
        self._snapshot: Snapshot | None = None
        self._training: Training | None = None
        self._contexts = ExitStack()

    def __enter__(self) -> Training:
        work = self._work
        if work is None:
            raise RuntimeError("a preparation is entered once; call prepare() again.")
        try:
            self._training = self._build(work)
        except BaseException:
            self._undo()
            raise
        return self._training

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo()
        _clear_own_frames(trace)

    def _undo(self) -> None:
        try:
            with Deferred(deaths=False):
                self._put_back()
        except (KeyboardInterrupt, Sent):
            # It came before it could be held back, or was delivered now that all is done.
            with Deferred(deaths=False):
                self._put_back()
            raise

    def _put_back(self) -> None:
        """End the workers and restore; does nothing the second time."""
        with ExitStack() as last:  # each of them, whatever becomes of the others
            last.callback(self._restore)
            last.callback(self._contexts.close)
            if self._training is not None:
                last.callback(self._training.close)

    def _restore(self) -> None:
        snapshot, work = self._snapshot, self._work
        try:
            if snapshot is not None:
                snapshot.restore(keep_training=self._keep_training)
            if snapshot is not None and work is not None and self._keep_training:
                self._settle(work)
        except (KeyboardInterrupt, Sent):
            raise
        except BaseException:
            self._let_go()
            raise
        self._let_go()

    def _settle(self, work: Workload) -> None:
        """Bring what training has made anew to where the weights are back."""
        modules, optimizers = training_parts(work)
        settle_optimizers(optimizers)
        if self._settings.precision == "bf16_pure" or self._settings.device or work.device:
            match_parameters(modules, optimizers)

    def _let_go(self) -> None:
        self._snapshot = None
        self._training = None
        self._work = None

    def _build(self, work: Workload) -> Training:
        settings, notes = self._settings, list[str]()
        check_reach(work, settings)
        device = run_device(work, settings)
        check_precision(settings.precision, device, notes)
        check_copies(settings, device)
        start_device(device)
        self._snapshot = Snapshot(
            (work.model, work.loss, work.optimizer, work.scheduler, work.step), (work.data,)
        )
        if self._snapshot.left_bytes:
            notes.append(
                f"{bytes_text(self._snapshot.left_bytes)} of tensors that the step can reach "
                "belong to no model or optimizer and were not copied: what is written there stays"
            )
        source = open_source(work, settings, notes, self._contexts)
        training = ready(work, settings, source, device, notes=notes, undo=self._contexts)
        training.decided(*_decisions(work, keep_training=self._keep_training))
        return training


def ready(
    work: Workload,
    settings: Settings,
    source: Source,
    device: torch.device,
    *,
    notes: list[str],
    undo: ExitStack,
    batches: Batches | None = None,
    wrap: Callable[[Plan], Plan] | None = None,
) -> Training:
    """Apply settings to the objects of a workload; ``undo`` takes back what is not a tensor.

    Args:
        work: What to run.
        settings: What to change.
        source: Where batches come from under these settings.
        device: Where to run.
        notes: Grows by what was decided for the user.
        undo: Is given what takes the changes back.
        batches: An open stream of batches to go on with; the training then does not close it.
        wrap: Changes the plan last: where the model is spread over ranks.

    Raises:
        SettingError: When a setting cannot act on this workload or machine.
    """
    check_pinning(settings, source)
    with outside_inference_mode():  # weights that are cast or moved must be ordinary tensors
        plan = apply(work, settings, source, device, undo=undo, notes=notes)
        plan = plan if wrap is None else wrap(plan)
    notes.extend(own_autocast(work, settings.precision))
    notes.extend(rate_rule(work, source, settings))
    effective = effective_values(work, source, settings, device)
    return Training(plan, effective=effective, notes=notes, batches=batches)


def _decisions(work: Workload, *, keep_training: bool) -> Iterator[str]:
    training_mode = getattr(work.model, "training", None) is True
    if work.step is None and not work.trains:
        yield "no loss and no optimizer: inference, forward pass only"
        if training_mode:
            yield "the model is in training mode, as it was: dropout and batch norm are active"
        return
    if work.step is None and not work.optimizers:
        yield "no optimizer: forward and backward only"
    if work.schedulers and work.step is None:
        yield "the scheduler is stepped after every optimizer step"
    if any(needs_closure(optimizer) for optimizer in work.optimizers) and work.step is None:
        yield "the optimizer evaluates the model itself: forward and backward lie inside its step"
    if keep_training:
        yield "the training of this run was kept: weights, optimizer and scheduler have moved on"
    else:
        yield "weights, optimizer, scheduler and random states were put back after the run"


def _clear_own_frames(trace: TracebackType | None) -> None:
    """Let go of batches and models in the finished frames of this package, and in no others."""
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__", "").startswith(__package__ or __name__):
            with suppress(RuntimeError):
                frame.clear()
        trace = trace.tb_next
