"""Which devices a trace speaks of, and which rows are work on them."""

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import DEVICE_WORK, Trace


def device_indices(trace: Trace) -> tuple[int, ...]:
    """Indices of the devices with work; without any work, those that the header describes.

    A header lists every device of the machine, used by this process or not, so it speaks only
    when no work was recorded. Work that names no device belongs to the index -1.
    """
    with_work = np.unique(trace.events.device[trace.events.rows(*DEVICE_WORK)])
    if len(with_work):
        return tuple(int(index) for index in with_work)
    return tuple(sorted({device.index for device in trace.devices if device.type != "cpu"}))


def work_rows(trace: Trace, device: int | None) -> NDArray[np.intp]:
    """Rows of kernels, copies and sets on one device (``None``: on any), in time order."""
    rows = trace.events.rows(*DEVICE_WORK)
    return rows if device is None else rows[trace.events.device[rows] == device]
