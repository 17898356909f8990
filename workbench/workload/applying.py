"""Apply the settings to a workload's objects, one switch after the other."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack

import torch
from torch import nn

from workbench.errors import SettingError, WorkloadError
from workbench.settings import Parallel, Settings
from workbench.workload.compilation import (
    compiled,
    compiler_watch,
    forget_graphs,
    is_compiled,
    without_new_compile_workers,
)
from workbench.workload.control import Control
from workbench.workload.placement import (
    check_device,
    model_device,
    move_modules,
    set_memory_format,
    settle_optimizers,
)
from workbench.workload.precision import scaler_for, set_matmul_mode
from workbench.workload.source import Source
from workbench.workload.switches.attention import set_attention
from workbench.workload.switches.casting import cast_training
from workbench.workload.switches.checkpointing import checkpoint_blocks
from workbench.workload.switches.data_parallel import check_data_parallel, data_parallel
from workbench.workload.switches.fp8 import set_fp8
from workbench.workload.switches.graphs import graphed
from workbench.workload.switches.optimizers import place_steps, set_loop
from workbench.workload.switches.processors import set_affinity, set_interop_threads, set_threads
from workbench.workload.switches.reach import training_parts
from workbench.workload.training import Plan
from workbench.workload.workload import Workload


def run_device(work: Workload, settings: Settings) -> torch.device:
    """The device of the run: that of the settings, else of the workload, else the model's.

    Raises:
        SettingError: When this machine lacks the device of the settings, or the model lies on
            several.
        WorkloadError: The same for the workload's own device.
    """
    if settings.device is not None:
        try:
            return check_device(settings.device, work.model)
        except WorkloadError as error:
            raise SettingError(str(error)) from error
    if work.device is not None:
        return check_device(work.device, work.model)
    return model_device(work.model)


def apply(
    work: Workload,
    settings: Settings,
    source: Source,
    device: torch.device,
    *,
    undo: ExitStack,
    notes: list[str],
) -> Plan:
    """Change what the settings name, and say how a step runs then.

    Raises:
        SettingError: When a setting cannot act here.
    """
    _check_ordinary(work, settings)
    notes.extend(check_data_parallel(work, settings, device))
    _set_process(settings, undo)
    _place(work, settings, device)
    _set_numbers(work, settings, device)
    _set_model(work, settings, device, undo, notes)
    if settings.optimizer is not None:
        set_loop(training_parts(work)[1], settings.optimizer, undo)
    model = _called(work, settings, device, undo)
    plan = Plan(
        work=work,
        source=source,
        model=model,
        device=device,
        control=_control(work, settings, device),
        precision=settings.precision,
        moves_batches=(
            (settings.device or work.device) is not None
            or bool(settings.channels_last)
            or settings.precision == "bf16_pure"
        ),
        settings=settings,
        compiler=compiler_watch() if settings.compile else tuple,
    )
    notes.extend(_last(settings))
    return plan


def _check_ordinary(work: Workload, settings: Settings) -> None:
    """Refuse to exchange the memory of weights that were made in inference mode.

    Raises:
        SettingError: When a setting would have to.
    """
    asked = {
        "precision='bf16_pure'": settings.precision == "bf16_pure",
        f"channels_last={settings.channels_last}": settings.channels_last is not None,
        f"device={settings.device!r}": settings.device is not None
        and torch.device(settings.device).type != model_device(work.model).type,
    }
    name = next((name for name, wanted in asked.items() if wanted), None)
    model = work.model
    if name is None or not isinstance(model, nn.Module):
        return
    if any(tensor.is_inference() for tensor in (*model.parameters(), *model.buffers())):
        raise SettingError(
            f"{name} cannot act: the model was made inside torch.inference_mode(), and such "
            "weights cannot be exchanged. Make it outside, or load its state_dict into one that is."
        )


def _set_process(settings: Settings, undo: ExitStack) -> None:
    if settings.cpu_affinity is not None:
        set_affinity(settings.cpu_affinity, undo)
    if settings.threads is not None:
        set_threads(settings.threads, undo)


def _place(work: Workload, settings: Settings, device: torch.device) -> None:
    if settings.device is not None:
        if device != model_device(work.model):
            _check_ranks(work, f"device={settings.device!r}")
        modules, optimizers = training_parts(work)
        move_modules(modules, device)
    elif work.device is not None and isinstance(work.model, nn.Module):
        modules, optimizers = [work.model], list(work.optimizers)
        move_modules([m for m in (work.model, work.loss) if isinstance(m, nn.Module)], device)
    else:
        return
    settle_optimizers(optimizers)
    for optimizer in optimizers:
        place_steps(optimizer)


def _set_numbers(work: Workload, settings: Settings, device: torch.device) -> None:
    set_matmul_mode(settings.precision, settings.matmul_precision)
    if settings.autocast_cache is not None:
        torch.set_autocast_cache_enabled(settings.autocast_cache)
    if settings.cudnn_benchmark is not None:
        if device.type != "cuda":
            raise SettingError(
                f"cudnn_benchmark={settings.cudnn_benchmark} cannot act on {device}: cuDNN "
                "computes on NVIDIA devices only."
            )
        torch.backends.cudnn.benchmark = settings.cudnn_benchmark
    if settings.precision == "bf16_pure":
        _check_ranks(work, "precision='bf16_pure'")
        cast_training(*training_parts(work), torch.bfloat16)


def _check_ranks(work: Workload, asked: str) -> None:
    """Refuse to exchange weights under a wrapper that has planned their transfers.

    Raises:
        SettingError: For a model that other processes or devices hold parts of.
    """
    wrappers = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    if isinstance(work.model, wrappers) or type(work.model).__name__.startswith("FullyShard"):
        raise SettingError(
            f"{asked} cannot act: {type(work.model).__name__} holds the weights as they were when "
            "it was made. Give the module inside it, or make it anew from one that is cast."
        )


def _set_model(
    work: Workload, settings: Settings, device: torch.device, undo: ExitStack, notes: list[str]
) -> None:
    if settings.channels_last is not None:
        set_memory_format(work.model, settings.channels_last)
        settle_optimizers(work.optimizers)
    if settings.precision == "fp8":
        notes.append(set_fp8(work, undo))
    if settings.attention is not None:
        set_attention(settings.attention, device, undo)
    if settings.checkpointing is not None:
        said = checkpoint_blocks(work, settings.checkpointing, undo)
        notes.extend([said] if said else [])


def _called(work: Workload, settings: Settings, device: torch.device, undo: ExitStack) -> object:
    """What a step calls: the user's model, or a twin of it."""
    if settings.cuda_graphs and device.type != "cuda":
        raise SettingError(
            f"cuda_graphs=True cannot act on {device}: a CUDA graph records the work of a CUDA "
            "device. Leave cuda_graphs out."
        )
    if settings.compile:
        undo.enter_context(without_new_compile_workers())
        if device.type == "cuda":
            undo.callback(forget_graphs, work, settings)
        return compiled(work, settings, device)
    if settings.compile is False and _may_be_compiled(work):
        undo.enter_context(torch.compiler.set_stance("force_eager"))
    if settings.cuda_graphs:
        return graphed(work.model, undo)
    if isinstance(settings.parallel, Parallel) and settings.parallel.mode == "dp":
        return data_parallel(work, settings.parallel, device)
    return work.model


def _may_be_compiled(work: Workload) -> bool:
    return is_compiled(work.model) or (work.step is not None and "torch._dynamo" in sys.modules)


def _control(work: Workload, settings: Settings, device: torch.device) -> Control:
    scaler = None
    if work.trains or work.step:
        scaler = scaler_for(settings.precision, device, settings.loss_scale)
    return Control(
        device=device,
        precision=settings.precision,
        scaler=scaler,
        accumulation=settings.accumulation or 1,
        non_blocking=bool(settings.non_blocking),
        channels_last=bool(settings.channels_last),
        autocast_cache=settings.autocast_cache,
        clip_norm=settings.clip_norm,
        set_to_none=settings.set_to_none,
    )


def _last(settings: Settings) -> Iterator[str]:
    """What cannot be put back comes when nothing can be refused any more."""
    if settings.interop_threads is not None:
        said = set_interop_threads(settings.interop_threads)
        if said is not None:
            yield said
