"""Whether a setting can reach where it would have to act; if not, the error says why."""

import torch

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload.source import Source
from workbench.workload.training import needs_closure
from workbench.workload.workload import Workload


def check_reach(work: Workload, settings: Settings) -> None:
    """Refuse settings that would have to act inside a step that does not let them in.

    Raises:
        SettingError: Naming the setting, the reason and the remedy.
    """
    inside = _inside(settings)
    if work.step is not None and not work.takes_control and inside:
        raise SettingError(
            f"{inside} cannot act inside a step of your own: it computes the loss, calls backward "
            "and steps the optimizer itself. Give the step a control argument, "
            "step(model, batch, control), and use what it offers."
        )
    if work.step is None and not work.trains and (settings.accumulation or 1) > 1:
        raise SettingError(
            f"accumulation={settings.accumulation} cannot act: without loss and optimizer there is "
            "no gradient to accumulate. Use a smaller batch_size to save memory."
        )
    if work.step is None and settings.precision == "fp16":
        for optimizer in work.optimizers:
            if needs_closure(optimizer):
                raise SettingError(
                    f"precision='fp16' cannot act: gradient scaling cannot be used with "
                    f"{type(optimizer).__name__}, which evaluates the model itself. Use 'bf16'."
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
    return None


def _accelerator() -> bool:
    return bool(torch.accelerator.is_available())
