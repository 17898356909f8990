"""Calls that ask the driver for device memory, or give it back, in steps that should be steady."""

import re
from dataclasses import dataclass

import numpy as np

from workbench.analysis.intervals import total, union
from workbench.analysis.memory import DEVICE_ALLOCATION
from workbench.analysis.steady import steady_numbers
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

DEVICE_RELEASE = re.compile(
    r"^(cuda|hip|mu|musa|cnrt|aclrt)Free(_v\d+|_ptds)*$"
    r"|^(cu|hip)Mem(Free|Release|Unmap)(_v\d+|_ptsz)*$"
)
STREAM_ORDERED = re.compile(r"Async")
"""Taken from a pool of the driver in the order of a stream: cheap, and meant for every step."""


@dataclass(frozen=True, kw_only=True)
class DeviceAllocations:
    """Memory that the steady steps ask the driver for."""

    steps: int
    """Steady steps looked at."""
    steps_with: int
    """Of these, the ones that ask for memory."""
    calls: int
    """Calls for memory in them."""
    releases: int
    """Calls that give memory back."""
    host_ns: int
    """Host time in both."""


def device_allocations(trace: Trace, steps: Steps | None) -> DeviceAllocations | None:
    """Calls for device memory in the steps after warm-up; ``None`` where no step is steady."""
    numbers = steady_numbers(steps)
    if steps is None or not numbers:
        return None
    events = trace.events
    rows = events.rows(Kind.RUNTIME, Kind.DRIVER)
    index = steps.step_of(events.ts[rows])
    rows, index = rows[index >= steps.first_steady], index[index >= steps.first_steady]
    asks = _named(trace, rows, DEVICE_ALLOCATION)
    gives = _named(trace, rows, DEVICE_RELEASE)
    both = rows[asks | gives]
    return DeviceAllocations(
        steps=len(numbers),
        steps_with=len(np.unique(index[asks])),
        calls=int(asks.sum()),
        releases=int(gives.sum()),
        host_ns=total(union(events.ts[both], events.end[both])),
    )


def _named(trace: Trace, rows: np.ndarray, pattern: re.Pattern[str]) -> np.ndarray:
    codes = trace.name_codes(
        lambda name: pattern.match(name) is not None and not STREAM_ORDERED.search(name)
    )
    return np.isin(trace.events.name[rows], codes)
