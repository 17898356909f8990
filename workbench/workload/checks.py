"""Whether a setting can reach where it would have to act; if not, the error says why."""

import torch

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload.precision import check_cache
from workbench.workload.source import Source
from workbench.workload.training import needs_closure
from workbench.workload.workload import Workload


def check_reach(work: Workload, settings: Settings) -> None:
    """Refuse settings that would have to act inside a step that does not let them in.

    Raises:
        SettingError: Naming the setting, the reason and the remedy.
    """
    check_one_process(settings)
    inside = _inside(settings)
    if work.step is not None and not work.takes_control and inside:
        raise SettingError(
            f"{inside} cannot act inside a step of your own: it computes the loss, calls backward "
            "and steps the optimizer itself. Give the step a control argument, "
            "step(model, batch, control), and use what it offers."
        )
    own = work.step is not None
    check_cache(settings.precision, settings.autocast_cache, inside=not own or work.takes_control)
    if not own and not work.trains:
        _check_inference(settings)
    if not own and not work.optimizers and settings.clip_norm is not None:
        raise SettingError(
            f"clip_norm={settings.clip_norm:g} cannot act: without an optimizer no step follows "
            "for which gradients could be limited."
        )
    if not own:
        _check_closures(work, settings)


def check_one_process(settings: Settings) -> None:
    """Refuse what acts in other processes only.

    Raises:
        SettingError: Naming what to call instead.
    """
    parallel = settings.ranks
    if parallel is not None:
        raise SettingError(
            f"parallel={parallel.mode!r} acts in processes of its own, which wb.profile starts: a "
            "training that runs here stays in this one. Use "
            f"wb.profile(work, wb.Settings(parallel={parallel.mode!r})), and wb.compare its Run "
            "with one of the loop as it is."
        )


def _check_inference(settings: Settings) -> None:
    asked = {
        "accumulation": (settings.accumulation or 1) > 1,
        "checkpointing": settings.checkpointing is not None,
        "set_to_none": settings.set_to_none is not None,
        "loss_scale": settings.loss_scale is not None,
    }
    why = {
        "accumulation": "no gradient to accumulate. Use a smaller batch_size to save memory",
        "checkpointing": "no backward pass, and no activation is kept for one",
        "set_to_none": "no gradient to drop or to clear",
        "loss_scale": "no gradient to scale",
    }
    for name, wanted in asked.items():
        if wanted:
            raise SettingError(
                f"{name}={getattr(settings, name)} cannot act: without loss and optimizer there is "
                f"{why[name]}."
            )


def _check_closures(work: Workload, settings: Settings) -> None:
    """Refuse what would change losses or gradients between the calls of a line search."""
    asked = {
        "precision='fp16'": (settings.precision == "fp16", "gradient scaling. Use 'bf16'"),
        f"clip_norm={settings.clip_norm}": (
            settings.clip_norm is not None,
            "clipping: its search compares losses along gradients. Leave clip_norm out",
        ),
    }
    for optimizer in work.optimizers:
        for name, (wanted, what) in asked.items():
            if wanted and needs_closure(optimizer):
                raise SettingError(
                    f"{name} cannot act: {type(optimizer).__name__} evaluates the model itself "
                    f"within its step, which does not go with {what}."
                )


def check_copies(settings: Settings, device: torch.device) -> None:
    """Refuse settings about copies to a device where nothing is copied.

    Raises:
        SettingError: For pinned memory or non-blocking copies when the model runs on the CPU.
    """
    if device.type != "cpu":
        return
    for name in ("pin_memory", "non_blocking"):
        if getattr(settings, name):
            where = "this machine has none" if not _accelerator() else "the model is on the CPU"
            raise SettingError(
                f"{name}=True cannot act: it speeds up copies to an accelerator, and {where}."
            )


def check_pinning(settings: Settings, source: Source) -> None:
    """Refuse non-blocking copies from memory that is not pinned.

    Raises:
        SettingError: When the loader is known not to pin.
    """
    if settings.non_blocking and source.loader is not None and not source.loader.pin_memory:
        raise SettingError(
            "non_blocking=True cannot act: copies from pageable memory block in any case. "
            "Set pin_memory=True with it."
        )


def _inside(settings: Settings) -> str | None:
    if settings.precision == "fp16":
        return "precision='fp16' (its gradient scaling)"
    if (settings.accumulation or 1) > 1:
        return f"accumulation={settings.accumulation}"
    if settings.non_blocking:
        return "non_blocking=True"
    if settings.clip_norm is not None:
        return f"clip_norm={settings.clip_norm:g}"
    if settings.set_to_none is not None:
        return f"set_to_none={settings.set_to_none}"
    return None


def _accelerator() -> bool:
    return bool(torch.accelerator.is_available())
