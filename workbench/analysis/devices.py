"""Which devices a trace speaks of, and which rows are work on them."""

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import DEVICE_WORK, Trace


def device_indices(trace: Trace) -> tuple[int, ...]:
    """Indices of the devices with recorded work; work that names no device belongs to -1."""
    with_work = np.unique(trace.events.device[trace.events.rows(*DEVICE_WORK)])
    return tuple(int(index) for index in with_work)


def described_devices(trace: Trace) -> tuple[int, ...]:
    """Indices of the accelerators in the header: all of the machine's, used or not."""
    return tuple(sorted({device.index for device in trace.devices if device.type != "cpu"}))


def work_rows(trace: Trace, device: int | None) -> NDArray[np.intp]:
    """Rows of kernels, copies and sets on one device (``None``: on any), in time order."""
    rows = trace.events.rows(*DEVICE_WORK)
    return rows if device is None else rows[trace.events.device[rows] == device]
