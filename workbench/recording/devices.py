"""Which devices this process already uses; asking creates no device context."""

from typing import Any

_ACTIVITIES = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}


def device_in_use() -> str | None:
    """Type of the accelerator that this process has initialised, such as ``cuda``."""
    import torch

    for kind in (*_ACTIVITIES, torch._C._get_privateuse1_backend_name()):
        initialised = getattr(getattr(torch, kind, None), "is_initialized", None)
        if initialised is not None and initialised():
            return kind
    return None


def activities(device_type: str | None) -> list[Any]:
    """What the profiler shall record: the host, and the given type of device where it can."""
    from torch._C._autograd import _supported_activities
    from torch.profiler import ProfilerActivity

    chosen = [ProfilerActivity.CPU]
    if device_type not in (None, "cpu"):
        name = _ACTIVITIES.get(str(device_type), "PrivateUse1")
        activity = getattr(ProfilerActivity, name, None)
        if activity in _supported_activities():
            chosen.append(activity)
    return chosen
