"""Apply settings to a workload for the length of a block, and put everything back after it."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from types import TracebackType

import torch
from torch import nn

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.units import bytes_text
from workbench.workload.capability import check_copies, check_pinning, check_reach
from workbench.workload.compilation import compiled, is_compiled, without_new_compile_workers
from workbench.workload.control import Control
from workbench.workload.effective import effective_values
from workbench.workload.interrupts import Deferred
from workbench.workload.placement import (
    check_device,
    model_device,
    move_model,
    set_memory_format,
    settle_optimizers,
    start_device,
)
from workbench.workload.precision import check_precision, scaler_for, set_matmul_mode
from workbench.workload.snapshot import Snapshot
from workbench.workload.source import Source, open_source
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
        except KeyboardInterrupt:
            # It came before it could be held back, or was delivered now that all is done.
            with Deferred(deaths=False):
                self._put_back()
            raise

    def _put_back(self) -> None:
        """End the workers and restore; does nothing the second time."""
        try:
            if self._training is not None:
                self._training.close()
            self._contexts.close()
        finally:
            self._restore()

    def _restore(self) -> None:
        snapshot, work = self._snapshot, self._work
        try:
            if snapshot is not None:
                snapshot.restore(keep_training=self._keep_training)
            if snapshot is not None and work is not None and self._keep_training:
                settle_optimizers(work.optimizers)
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._let_go()
            raise
        self._let_go()

    def _let_go(self) -> None:
        self._snapshot = None
        self._training = None
        self._work = None

    def _build(self, work: Workload) -> Training:
        settings, notes = self._settings, list[str]()
        _refuse_what_is_not_possible_yet(settings)
        check_reach(work, settings)
        device = model_device(work.model)
        if work.device is not None:
            device = check_device(work.device, work.model)
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
        source = open_source(work, settings, notes)
        check_pinning(settings, source)
        plan = self._apply(work, settings, source, device)
        notes.extend(_decisions(work, keep_training=self._keep_training))
        effective = effective_values(work, source, settings, device)
        return Training(plan, effective=effective, notes=notes)

    def _apply(
        self, work: Workload, settings: Settings, source: Source, device: torch.device
    ) -> Plan:
        if work.device is not None and isinstance(work.model, nn.Module):
            move_model(work.model, device, work.optimizers, work.loss)
        set_matmul_mode(settings.precision)
        if settings.channels_last is not None:
            set_memory_format(work.model, settings.channels_last)
            settle_optimizers(work.optimizers)
        model = work.model
        if settings.compile:
            self._contexts.enter_context(without_new_compile_workers())
            model = compiled(model, device)
        elif settings.compile is False and _may_be_compiled(work):
            self._contexts.enter_context(torch.compiler.set_stance("force_eager"))
        control = Control(
            device=device,
            precision=settings.precision,
            scaler=scaler_for(settings.precision, device) if work.trains or work.step else None,
            accumulation=settings.accumulation or 1,
            non_blocking=bool(settings.non_blocking),
            channels_last=bool(settings.channels_last),
        )
        return Plan(
            work=work,
            source=source,
            model=model,
            device=device,
            control=control,
            precision=settings.precision,
            moves_batches=work.device is not None or bool(settings.channels_last),
        )


def _decisions(work: Workload, *, keep_training: bool) -> Iterator[str]:
    training_mode = isinstance(work.model, nn.Module) and work.model.training
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


_NOT_YET = (
    *("matmul_precision", "autocast_cache", "loss_scale", "compile_dynamic", "compile_fullgraph"),
    *("cudnn_benchmark", "cuda_graphs", "attention", "checkpointing", "clip_norm", "optimizer"),
    *("set_to_none", "drop_last", "batched_fetch", "in_order", "multiprocessing_context"),
    *("threads", "interop_threads", "worker_threads", "cpu_affinity", "device"),
)


def _refuse_what_is_not_possible_yet(settings: Settings) -> None:
    names = [name for name in _NOT_YET if getattr(settings, name) is not None]
    if settings.precision in ("bf16_pure", "fp8"):
        names.append(f"precision={settings.precision!r}")
    if isinstance(settings.compile, str) and settings.compile != "default":
        names.append(f"compile={settings.compile!r}")
    if names:
        raise SettingError(f"{', '.join(names)}: not possible yet; leave it out.")


def _may_be_compiled(work: Workload) -> bool:
    return is_compiled(work.model) or (work.step is not None and "torch._dynamo" in sys.modules)


def _clear_own_frames(trace: TracebackType | None) -> None:
    """Let go of batches and models in the finished frames of this package, and in no others."""
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__", "").startswith(__package__ or __name__):
            with suppress(RuntimeError):
                frame.clear()
        trace = trace.tb_next
