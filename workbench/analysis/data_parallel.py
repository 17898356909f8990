"""What ``nn.DataParallel`` costs: copying the model, spreading the batch, and devices that wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.intervals import total, union
from workbench.trace.table import Kind, Trace

if TYPE_CHECKING:
    from workbench.analysis.device_time import DeviceTime
    from workbench.analysis.steps import Steps

FORWARD = "DataParallel.forward"
MOVING = re.compile(
    r"^(autograd::engine::evaluate_function: )?(Broadcast|Scatter|Gather|ReduceAddCoalesced)"
    r"(Backward)?$|^(DataParallel\.)?(replicate|scatter|gather|broadcast)$"
)
"""Nodes of torch.nn.parallel and ranges of that name; ``aten::gather`` is another matter."""


@dataclass(frozen=True, kw_only=True)
class DataParallelUse:
    """The use of ``nn.DataParallel`` in the complete steps of one process."""

    calls: int
    """Forward passes of the wrapper."""
    moving_ns: float | None
    """Host time a step in which the model is copied or batches are spread and collected; ``None``
    without steps."""
    busy: Mapping[int, float]
    """Per device the share of its window in which it works."""


def data_parallel_use(
    trace: Trace, steps: Steps | None, device_time: Mapping[int, DeviceTime]
) -> DataParallelUse | None:
    """Measure it; ``None`` where the trace has no forward pass of the wrapper.

    Args:
        trace: The event table.
        steps: The steps of the loop, if the trace marks any.
        device_time: Per device the times of its window.
    """
    events = trace.events
    host = events.of_kind(Kind.OPERATOR, Kind.ANNOTATION)
    forward = host & np.isin(events.name, trace.name_codes(lambda name: name == FORWARD))
    if not forward.any():
        return None
    rows = np.flatnonzero(
        host & np.isin(events.name, trace.name_codes(lambda name: bool(MOVING.match(name))))
    )
    moving_ns = None
    if steps is not None and len(steps):
        rows = rows[steps.step_of(events.ts[rows]) >= 0]
        forward &= steps.step_of(events.ts) >= 0
        moving_ns = total(union(events.ts[rows], events.end[rows])) / len(steps)
    return DataParallelUse(
        calls=int(forward.sum()),
        moving_ns=moving_ns,
        busy={
            device: time.busy / time.range.length
            for device, time in device_time.items()
            if time.range.length > 0
        },
    )
