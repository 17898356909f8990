"""How much memory was in use at most, and whether steps ask the device for more."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.analysis.launches import join_launches
from workbench.analysis.steps import Steps, find_steps
from workbench.trace.table import Kind, Trace

DEVICE_ALLOCATION = re.compile(
    r"^(cuda|hip|mu|musa|cnrt|aclrt)Malloc(Async|Managed|Pitch|3D)?(_v\d+|_ptds)*$"
    r"|^(cu|hip)Mem(Alloc|AllocAsync|AllocManaged|Create)(_v\d+|_ptsz)*$"
)
"""Calls that ask the device's driver for memory; a caching allocator makes few of them."""

CPU = 0
"""Device type of the host in ``[memory]`` events (c10::DeviceType)."""


@dataclass(frozen=True, kw_only=True)
class MemorySummary:
    """Memory as the allocator reported it."""

    peak_bytes: int | None
    """Largest allocation total of any device; of the host where no device was recorded."""
    peak_by_device: Mapping[tuple[int, int], int]
    """The same per (device type, device index), the host included."""
    device_allocations_per_step: float | None
    """Calls for device memory in the complete steps per step; ``None`` without steps or calls."""


def memory_summary(trace: Trace, steps: Steps | None = None) -> MemorySummary | None:
    """Peak memory and device allocations; ``None`` when the trace holds neither.

    Args:
        trace: The event table.
        steps: The steps of the loop; found here when not given.
    """
    peaks = _peaks(trace)
    allocations = _allocations_per_step(trace, steps)
    if not peaks and allocations is None:
        return None
    on_devices = [peak for (kind, _), peak in peaks.items() if kind != CPU]
    of_interest = on_devices or list(peaks.values())
    return MemorySummary(
        peak_bytes=max(of_interest, default=None),
        peak_by_device=peaks,
        device_allocations_per_step=allocations,
    )


def _peaks(trace: Trace) -> dict[tuple[int, int], int]:
    """Largest recorded total of every device; what was not recorded is not there."""
    memory = trace.memory
    known = memory.total_allocated >= 0
    kind, index = memory.device_type[known], memory.device_index[known]
    total = memory.total_allocated[known]
    pairs = sorted(set(zip(kind.tolist(), index.tolist(), strict=True)))
    return {
        (device, number): int(total[(kind == device) & (index == number)].max())
        for device, number in pairs
    }


def _allocations_per_step(trace: Trace, steps: Steps | None) -> float | None:
    """Calls for device memory between the first and the last complete step, per step."""
    events = trace.events
    calls = events.rows(Kind.RUNTIME, Kind.DRIVER)
    if not len(calls):
        return None
    if steps is None:
        steps = find_steps(trace, join_launches(trace))
    if steps is None or not len(steps):
        return None
    codes = trace.name_codes(lambda name: DEVICE_ALLOCATION.match(name) is not None)
    at = events.ts[calls[np.isin(events.name[calls], codes)]]
    return int(((at >= steps.start[0]) & (at < steps.end[-1])).sum()) / len(steps)
