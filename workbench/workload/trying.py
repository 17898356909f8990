"""Tries on paper whether settings can act on a workload; nothing is changed, no device opened."""

import os
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from workbench.errors import SettingError, WorkloadError
from workbench.machine import attention_back_ends, shared_memory, usable_cpus
from workbench.machine.toolchain import compile_lacks
from workbench.settings import Settings
from workbench.units import bytes_text
from workbench.workload.checks import check_copies, check_reach
from workbench.workload.compilation import is_compiled
from workbench.workload.loader import LOADER_SETTINGS, adapted, is_plain, loader_for
from workbench.workload.placement import check_device, model_device
from workbench.workload.precision import check_precision
from workbench.workload.probed import DTYPE_OF, probed
from workbench.workload.switches.attention import attention_kernels
from workbench.workload.switches.data_parallel import check_data_parallel
from workbench.workload.switches.optimizers import why_not
from workbench.workload.switches.reach import training_parts
from workbench.workload.workload import DEFAULT_BATCH_SIZE, Workload, is_data_set, is_factory

SMALL_SHARED_MEMORY = 1_000_000_000
"""As in the preflight: containers give 64 MB by default."""


class Trial:
    """One workload on one device, asked about many settings.

    Attributes:
        device: Where it would run.
        workers: Worker processes of its loader as it is.
        batch_size: Samples per batch as it is, if the loader fixes it.
    """

    def __init__(self, work: Workload, device: torch.device | None = None) -> None:
        self._work = work
        chosen = device or work.device
        self.device = torch.device(chosen) if chosen is not None else model_device(work.model)
        self._loader, self._no_loader = _loader(work)
        self.workers = 0 if self._loader is None else self._loader.num_workers
        self.batch_size = None if self._loader is None else self._loader.batch_size
        self._optimizers: list[Any] | None = None

    def refusal(self, settings: Settings, field: str) -> str | None:
        """Why ``field`` of these settings cannot act, in the words of its refusal."""
        checks = {
            "precision": self._precision,
            "loss_scale": self._precision,
            "autocast_cache": self._precision,
            "attention": self._attention,
            "optimizer": self._optimizer,
            "channels_last": self._channels_last,
            "checkpointing": self._checkpointing,
            "cudnn_benchmark": self._cuda_only,
            "cuda_graphs": self._cuda_only,
            "device": self._device,
            "parallel": self._parallel,
            "cpu_affinity": self._affinity,
            **dict.fromkeys(("compile", "compile_dynamic", "compile_fullgraph"), self._compile),
            **dict.fromkeys(LOADER_SETTINGS, self._of_loader),
        }
        try:
            check_reach(self._work, settings)
            check_copies(settings, self.device)
            if field in checks:
                checks[field](settings)
        except (SettingError, WorkloadError) as error:
            return str(error)
        return None

    def remark(self, field: str, value: Any) -> tuple[bool, str | None]:
        """Whether a value that can act does harm here, and what to know of it."""
        usable = usable_cpus()
        if field in ("workers", "threads") and value > usable:
            return True, f"more than the {usable} processors that this process may use"
        if field == "worker_threads" and value * max(1, self.workers) > usable:
            return True, f"with the workers more than the {usable} processors of this process"
        if field == "workers" and value:
            room = shared_memory()
            if room is not None and room.free < SMALL_SHARED_MEMORY:
                return False, f"only {bytes_text(room.free)} are free in /dev/shm for their batches"
        if field == "interop_threads":
            return False, "torch allows this once in a process, and it cannot be taken back"
        if field in LOADER_SETTINGS and self._loader is None and self._no_loader is None:
            return False, "the data comes from a function, so whether it can act shows in use"
        return False, None

    def why_empty(self, field: str) -> str:
        """Why there is no value to offer for a field."""
        reasons = {
            "checkpointing": "checkpointing cannot act: the model has no blocks of which there are "
            "several. Name modules of your own.",
            "batch_size": self._no_loader or "the batch size shows only when data is asked for.",
            "cpu_affinity": "cpu_affinity cannot act: this system has no call for it; Linux has.",
        }
        return reasons.get(field, f"{field} cannot act on this workload.")

    def _precision(self, settings: Settings) -> None:
        precision = settings.precision
        fresh = self.device.type == "cuda" and not _cuda_in_use()
        if fresh and precision in DTYPE_OF:
            found = probed(DTYPE_OF[precision], self.device)
            if not found.supported:
                raise SettingError(f"precision={precision!r} cannot act: {found.reason}.")
            return
        check_precision(precision, self.device, [])

    def _of_loader(self, settings: Settings) -> None:
        if self._no_loader is not None:
            raise SettingError(self._no_loader)
        if self._loader is not None:
            with ExitStack() as undo:
                adapted(self._loader, settings, undo)

    def _attention(self, settings: Settings) -> None:
        kernel = settings.attention
        if self.device.type == "cpu" or _cuda_in_use():
            known = attention_kernels(self.device)
            if kernel not in known:
                raise SettingError(
                    f"attention={kernel!r} cannot act on {self.device}: torch has "
                    f"{' and '.join(known)} there."
                )
        for each in attention_back_ends(str(self.device)):
            if each.name == kernel and each.possible is False:
                raise SettingError(
                    f"attention={kernel!r} cannot act on {self.device}: a small trial of it failed."
                )

    def _optimizer(self, settings: Settings) -> None:
        if self._optimizers is None:
            self._optimizers = list(training_parts(self._work)[1])
        if not self._optimizers:
            raise SettingError(
                f"optimizer={settings.optimizer!r} cannot act: the workload names no optimizer."
            )
        for optimizer in self._optimizers:
            why = why_not(optimizer, settings.optimizer or "single")
            if why is not None:
                name = type(optimizer).__name__
                raise SettingError(f"optimizer={settings.optimizer!r} cannot act on {name}: {why}.")

    def _channels_last(self, settings: Settings) -> None:
        model = self._work.model
        weights = list(model.parameters()) if isinstance(model, nn.Module) else []
        if not any(weight.dim() == 4 for weight in weights):
            raise SettingError(
                f"channels_last={settings.channels_last} cannot act: the model has no 4-d weights "
                "(2-d convolutions), so there is no channel order to change."
            )

    def _checkpointing(self, settings: Settings) -> None:
        model = self._work.model
        if not isinstance(model, nn.Module) or isinstance(model, nn.DataParallel):
            raise SettingError(
                f"checkpointing={settings.checkpointing} cannot act on a {type(model).__name__}."
            )

    def _cuda_only(self, settings: Settings) -> None:
        if self.device.type != "cuda":
            raise SettingError(
                f"{settings} cannot act on {self.device}: it is about work on a CUDA device."
            )

    def _device(self, settings: Settings) -> None:
        check_device(settings.device or "cpu", self._work.model)

    def _parallel(self, settings: Settings) -> None:
        check_data_parallel(self._work, settings, self.device)

    def _affinity(self, settings: Settings) -> None:
        if not hasattr(os, "sched_getaffinity"):
            raise SettingError(self.why_empty("cpu_affinity"))
        lacking = set(settings.cpu_affinity or ()) - os.sched_getaffinity(0)
        if lacking:
            numbers = ", ".join(map(str, sorted(lacking)))
            raise SettingError(f"cpu_affinity cannot act: this process may not use CPU {numbers}.")

    def _compile(self, settings: Settings) -> None:
        if not settings.compile:
            return
        asked = f"compile={settings.compile!r}"
        if is_compiled(self._work.model):
            raise SettingError(
                f"{asked} cannot act: the model (or a part of it) is compiled already. "
                "Use compile=False to see what compilation gains."
            )
        if isinstance(self._work.model, nn.DataParallel):
            raise SettingError(f"{asked} cannot act: DataParallel makes new copies in every step.")
        lack = compile_lacks(self.device.type)
        if lack is not None:
            raise SettingError(f"{asked} cannot act: it lacks {lack}.")


def _cuda_in_use() -> bool:
    """Whether this process has opened CUDA anyway; what asks further would open it."""
    cuda: Any = torch.cuda
    return bool(cuda.is_initialized())


def _loader(work: Workload) -> tuple[DataLoader[Any] | None, str | None]:
    """The loader that settings would copy, or why they reach none; neither for a function."""
    data = work.data
    if is_factory(data):
        return None, None
    if is_data_set(data, work.batch_size):
        return loader_for(data, work.batch_size or DEFAULT_BATCH_SIZE, shuffle=False), None
    if isinstance(data, DataLoader) and is_plain(data):
        return data, None
    kind = type(data).__name__
    why = "is a loader with an iteration of its own"
    if not isinstance(data, DataLoader):
        why = "gives batches that are made elsewhere"
    return None, f"settings of the loader cannot act: {kind} {why}. Give the Dataset itself."
