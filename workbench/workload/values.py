"""The usual values of every setting for a workload, and what each needs beside it."""

import multiprocessing
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, get_args

from torch import nn

from workbench.machine import devices, usable_cpus
from workbench.settings import ParallelMode, Precision
from workbench.workload.workload import Workload

if TYPE_CHECKING:
    from workbench.workload.trying import Trial

MOST_WORKERS = 16
"""Own choice: a list that a person reads; a tuner may go further."""
MOST_BLOCKS = 8


def candidates(work: Workload, trial: "Trial") -> dict[str, tuple[Any, ...]]:
    """Values worth offering, by field; an empty tuple where the workload has none."""
    size, usable = trial.batch_size, usable_cpus()
    both = (True, False)
    sizes = () if size is None else tuple(sorted({max(1, size // 2), size, 2 * size, 4 * size}))
    parts = tuple(n for n in (2, 4, 8) if size is None or n <= size)
    allowed = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()
    counts = tuple(n for n in (0, 1, 2, 4, 8, MOST_WORKERS) if n <= usable)
    switches = ("channels_last", "set_to_none", "pin_memory", "persistent_workers", "non_blocking")
    loader = ("drop_last", "batched_fetch", "in_order", "autocast_cache", "cudnn_benchmark")
    return {
        **dict.fromkeys((*switches, *loader), both),
        "precision": get_args(Precision),
        "matmul_precision": ("highest", "high", "medium"),
        "loss_scale": (1024.0, 65536.0),
        "compile": (False, "default", "reduce-overhead", "max-autotune"),
        "compile_dynamic": both,
        "compile_fullgraph": (True,),
        "cuda_graphs": (True,),
        "attention": ("flash", "efficient", "cudnn", "math"),
        "checkpointing": blocks(work.model),
        "accumulation": parts,
        "clip_norm": (1.0,),
        "optimizer": ("foreach", "fused", "single"),
        "batch_size": sizes,
        "workers": (*dict.fromkeys((*counts, usable, usable + 1)),),
        "prefetch_factor": (2, 4, 8),
        "multiprocessing_context": tuple(multiprocessing.get_all_start_methods()),
        "threads": _up_to(usable),
        "interop_threads": _up_to(usable),
        "worker_threads": _up_to(usable),
        "cpu_affinity": (allowed,) if allowed else (),
        "parallel": get_args(ParallelMode),
        "device": ("cpu", *(f"{_torch_name(d.type)}:{d.index}" for d in devices())),
    }


def _up_to(usable: int) -> tuple[int, ...]:
    return tuple(sorted({n for n in (1, 2, 4, 8, 16, 32) if n <= usable} | {usable}))


def _torch_name(kind: str) -> str:
    return "cuda" if kind == "hip" else kind


def blocks(model: Any) -> tuple[tuple[str, ...], ...]:
    """Types of the blocks of which a model has several, by their parameters, largest first."""
    if not isinstance(model, nn.Module):
        return ()
    count: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    for module in model.modules():
        if module is model or not any(True for _ in module.children()):
            continue
        name = type(module).__name__
        count[name] += 1
        weights[name] += sum(p.numel() for p in module.parameters())
    containers = {"ModuleList", "ModuleDict", "ParameterList"}
    several = [name for name in count if count[name] > 1 and name not in containers]
    several.sort(key=lambda name: -weights[name])
    return tuple((name,) for name in several[:MOST_BLOCKS])


def companions(field: str, value: Any, trial: "Trial") -> dict[str, Any]:
    """Other settings without which a value could not act, and so could not be judged."""
    with_workers = ("prefetch_factor", "persistent_workers", "multiprocessing_context")
    if field in (*with_workers, "worker_threads", "in_order") and value is not None:
        return {"workers": max(1, trial.workers)}
    needs: dict[str, dict[str, Any]] = {
        "autocast_cache": {"precision": "bf16"},
        "loss_scale": {"precision": "fp16"},
        "compile_dynamic": {"compile": True},
        "compile_fullgraph": {"compile": True},
    }
    if field == "non_blocking" and value and trial.device.type != "cpu":
        return {"pin_memory": True}
    return needs.get(field, {})
