"""What a backend of the host moves although devices work: tensors that go over the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.collective_names import HOST_RANGE
from workbench.analysis.collective_records import Records
from workbench.analysis.devices import device_indices
from workbench.trace.table import DEVICE_WORK, Kind, Trace

if TYPE_CHECKING:
    from workbench.analysis.launches import Launches
    from workbench.analysis.steps import Steps


def host_backend_bytes(trace: Trace, launches: Launches, steps: Steps | None) -> int | None:
    """Bytes a step in collectives of gloo or MPI.

    ``None`` without a device, such a collective or steps. Of collectives whose size was not
    recorded none are counted.
    """
    if steps is None or not len(steps) or not device_indices(trace):
        return None
    events = trace.events
    codes = trace.name_codes(lambda name: bool(HOST_RANGE.match(name)))
    found = np.isin(events.name, codes)
    found &= ~events.of_kind(*DEVICE_WORK, Kind.DEVICE_ANNOTATION)
    rows = np.flatnonzero(found).astype(np.int64)
    rows = rows[steps.step_of(events.ts[rows]) >= 0]
    if not len(rows):
        return None
    _, calls = Records(trace, launches).calls(rows)
    return sum(call.bytes or 0 for call in calls) // len(steps)
