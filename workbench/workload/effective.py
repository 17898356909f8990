"""What is in force in a run, also where no setting asked for it."""

import os
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from workbench.machine.toolchain import compile_lacks
from workbench.settings import Parallel, Settings
from workbench.workload.compilation import is_compiled
from workbench.workload.loader import WorkerStart, shards, start_method
from workbench.workload.precision import matmul_precision, precision_name
from workbench.workload.source import Source
from workbench.workload.switches.batched_fetch import gives_batches, has_batched_fetch
from workbench.workload.switches.optimizers import why_not
from workbench.workload.workload import Workload


def effective_values(
    work: Workload, source: Source, settings: Settings, device: torch.device
) -> dict[str, Any]:
    """Every value by name; ``None`` where it is not known or does not apply."""
    model = work.model
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else None
    dtype = next((p.dtype for p in parameters or () if p.is_floating_point()), None)
    return {
        "model": type(model).__name__,
        "parameters": None if parameters is None else sum(p.numel() for p in parameters),
        "trainable_parameters": (
            None if parameters is None else sum(p.numel() for p in parameters if p.requires_grad)
        ),
        "training_mode": getattr(model, "training", None),
        "step": _step_kind(work),
        "optimizers": [type(optimizer).__name__ for optimizer in work.optimizers],
        "schedulers": [type(scheduler).__name__ for scheduler in work.schedulers],
        "device": str(device),
        "parallel": _parallel(settings, model),
        "precision": precision_name(settings.precision, device, dtype),
        "matmul_precision": matmul_precision(),
        "compile": settings.compile if settings.compile is not None else is_compiled(model),
        "compile_dynamic": settings.compile_dynamic,
        "compile_fullgraph": settings.compile_fullgraph,
        "cuda_graphs": settings.cuda_graphs,
        "autocast_cache": settings.autocast_cache,
        "loss_scale": settings.loss_scale,
        "set_to_none": settings.set_to_none,
        "channels_last": _is_channels_last(parameters or []),
        "accumulation": settings.accumulation or 1,
        "clip_norm": settings.clip_norm,
        "checkpointing": list(settings.checkpointing or ()) or None,
        "optimizer": _optimizer_loop(work),
        "attention": settings.attention,
        "non_blocking": bool(settings.non_blocking),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_affinity": _affinity(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark if device.type == "cuda" else None,
        **_loader_values(source),
        "can": _can(work, source, settings, device),
    }


def _can(
    work: Workload, source: Source, settings: Settings, device: torch.device
) -> dict[str, Any]:
    """What some switches could do, whatever they are at now; ``None``: not known."""
    loops = [
        loop
        for loop in ("fused", "foreach")
        if work.optimizers and all(why_not(each, loop) is None for each in work.optimizers)
    ]
    loader = source.loader
    compiled_by_user = settings.compile is None and is_compiled(work.model)
    return {
        "optimizer": loops,
        "batched_fetch": None if loader is None else gives_batches(loader),
        "compile": not compiled_by_user and compile_lacks(device.type) is None,
    }


def _loader_values(source: Source) -> dict[str, Any]:
    loader = source.loader
    if loader is None:
        names = (
            *("batch_size", "workers", "prefetch_factor", "pin_memory", "persistent_workers"),
            *("drop_last", "batched_fetch", "in_order", "multiprocessing_context"),
            "worker_threads",
        )
        return {"data": source.kind, **dict.fromkeys(names)}
    batch_sampler = loader.batch_sampler
    return {
        "data": source.kind,
        "batch_size": loader.batch_size,
        "workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "pin_memory": loader.pin_memory and torch.accelerator.is_available(),
        "persistent_workers": loader.persistent_workers,
        "drop_last": loader.drop_last,
        "batched_fetch": has_batched_fetch(loader.dataset),
        "in_order": getattr(loader, "in_order", True),
        "multiprocessing_context": start_method(loader) if loader.num_workers else None,
        "worker_threads": _worker_threads(loader),
        "sampler": type(loader.sampler).__name__,
        "batch_sampler": None if batch_sampler is None else type(batch_sampler).__name__,
        "data_set": type(loader.dataset).__name__,
        **_epoch_values(loader),
    }


def _epoch_values(loader: DataLoader[Any]) -> dict[str, Any]:
    """How long an epoch is, and whether several workers read the data once or each for itself."""
    if isinstance(loader.dataset, IterableDataset):
        divided = shards(loader) if loader.num_workers > 1 else None
        return {"iterable": True, "divides_itself": divided, "batches_per_epoch": None}
    try:
        batches = len(loader)
    except Exception:  # noqa: BLE001 - of the user's sampler, which the loop does not ask
        batches = None
    return {"iterable": False, "divides_itself": None, "batches_per_epoch": batches}


def _worker_threads(loader: DataLoader[Any]) -> int | None:
    """Threads of one operator in a worker, as far as it is known; torch starts with one."""
    if not loader.num_workers:
        return None
    start = loader.worker_init_fn
    return start.threads if isinstance(start, WorkerStart) else 1 if start is None else None


def _optimizer_loop(work: Workload) -> str | None:
    """How all optimizers go over their parameters; ``None`` where that is left to torch."""
    loops = {_loop(group) for one in work.optimizers for group in one.param_groups}
    return loops.pop() if len(loops) == 1 else None


def _loop(group: dict[str, Any]) -> str | None:
    fused, foreach = group.get("fused"), group.get("foreach")
    if fused or foreach:
        return "fused" if fused else "foreach"
    return "single" if foreach is False else None


def _parallel(settings: Settings, model: Any) -> Any:
    """The mode asked for, or that of the user's own wrapper; ``None`` for one process."""
    if isinstance(settings.parallel, Parallel):
        return settings.parallel.to_json()
    wrappers = {nn.DataParallel: "dp", nn.parallel.DistributedDataParallel: "ddp"}
    return next((name for kind, name in wrappers.items() if isinstance(model, kind)), None)


def _affinity() -> list[int] | None:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def _step_kind(work: Workload) -> str:
    if work.step is not None:
        return "own step with control" if work.takes_control else "own step"
    if not work.trains:
        return "inference"
    return "training" if work.optimizers else "forward and backward"


def _is_channels_last(parameters: list[nn.Parameter]) -> bool | None:
    """``None`` for a model without 4-d weights, where there is no such order."""
    weights = [p for p in parameters if p.dim() == 4 and p.shape[1] > 1]
    if not weights:
        return None
    return all(p.is_contiguous(memory_format=torch.channels_last) for p in weights)
