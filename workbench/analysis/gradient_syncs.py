"""How often DistributedDataParallel averages gradients for one step of the optimizer.

Between two steps of the optimizer lie one or more passes of the wrapped model (micro-batches). The
all-reduces that the host starts after a pass, up to the next pass or the optimizer, are its set.
Statistics that other layers reduce in every pass make smaller sets; the gradient's is the largest.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.collective_names import HOST_RANGE, collective_kind
from workbench.analysis.communication_names import is_communication
from workbench.analysis.devices import work_rows
from workbench.analysis.launches import Launches
from workbench.analysis.optimizer_launches import STEP_RANGE
from workbench.trace.table import Kind, Trace

FORWARD = "DistributedDataParallel.forward"
Times = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class GradientSyncs:
    """Passes and gradient synchronizations of the optimizer steps that the trace holds whole."""

    optimizer_steps: int
    passes: float
    """Passes of the model per optimizer step."""
    sets: float
    """Sets of gradient all-reduces per optimizer step."""
    calls: int
    """All-reduces of one set."""
    unsynced: int
    """Optimizer steps whose last pass had no set, although an earlier one had."""


def gradient_syncs(trace: Trace, launches: Launches) -> GradientSyncs | None:
    """Count sets of all-reduces per optimizer step; ``None`` where the trace lacks one of them."""
    events = trace.events
    host = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)
    passes = np.flatnonzero(host & np.isin(events.name, trace.name_codes(lambda n: n == FORWARD)))
    steps = trace.name_codes(lambda name: STEP_RANGE.match(name) is not None)
    optimizer = np.flatnonzero(host & np.isin(events.name, steps))
    if not len(passes) or not len(optimizer):
        return None
    lane = events.lane[passes[0]]
    passes, optimizer = (
        passes[events.lane[passes] == lane],
        optimizer[events.lane[optimizer] == lane],
    )
    return _counted(
        events.ts[passes], events.end[passes], events.ts[optimizer], _all_reduces(trace, launches)
    )


def _all_reduces(trace: Trace, launches: Launches) -> Times:
    """When the host started each all-reduce: its launch, or its range on the CPU."""
    events = trace.events
    named = trace.name_codes(
        lambda name: is_communication(name) and collective_kind(name) == "all_reduce"
    )
    kernels = work_rows(trace, None)
    kernels = kernels[np.isin(events.name[kernels], named)]
    kernels = kernels[launches.launch[kernels] >= 0]
    if len(kernels):
        return np.unique(events.ts[launches.launch[kernels]])
    ranges = trace.name_codes(
        lambda name: HOST_RANGE.match(name) is not None and collective_kind(name) == "all_reduce"
    )
    host = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)
    return np.sort(events.ts[host & np.isin(events.name, ranges)])


def _counted(starts: Times, ends: Times, optimizer: Times, called: Times) -> GradientSyncs | None:
    """Sets of each pass, for the optimizer steps between the first and the last seen."""
    following = np.searchsorted(optimizer, starts, "left")
    limit = np.append(optimizer, np.iinfo(np.int64).max)[following]
    limit = np.minimum(limit, np.append(starts[1:], np.iinfo(np.int64).max))
    calls = np.searchsorted(called, limit, "left") - np.searchsorted(called, ends, "left")
    whole = (following >= 1) & (following < len(optimizer))
    if not whole.any() or calls[whole].max() == 0:
        return None
    following, calls = following[whole], calls[whole]
    synced = calls == calls.max()
    last = np.append(following[1:] != following[:-1], True)
    groups = np.unique(following)
    with_set = np.isin(groups, following[synced])
    last_synced = np.isin(groups, following[synced & last])
    return GradientSyncs(
        optimizer_steps=len(groups),
        passes=len(following) / len(groups),
        sets=float(synced.sum()) / len(groups),
        calls=int(calls.max()),
        unsynced=int((with_set & ~last_synced).sum()),
    )
