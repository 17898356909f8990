"""Records with impossible times are left out and counted, so that they stretch no axis.

Device work of no length at moment 0 is a record that the driver never filled in, also where the
trace counts from its own beginning.
"""

import numpy as np
from numpy.typing import NDArray

from workbench.trace.notes import Notes
from workbench.trace.stamps import INVALID
from workbench.trace.table import DEVICE_WORK, Violation

HOUR_NS = 3600 * 10**9
FAR_NS = 7 * 24 * HOUR_NS
"""A start this far from the middle of the trace is no time of this recording."""
_SMALL_SHARE = 0.01
_OF_DEVICES = ("busy", "idle", "causes", "queue", "operator_device_time", "kernels")
LONGEST_NS = 24 * HOUR_NS
"""No profiled record lasts longer than a day."""


def keep_possible(
    ts: NDArray[np.int64],
    dur: NDArray[np.int64],
    unmatched: NDArray[np.int64],
    kind: NDArray[np.uint8],
    notes: Notes,
) -> NDArray[np.bool_] | None:
    """Which rows have a possible time; ``None`` for all of them. What is left out is noted."""
    if not len(ts):
        return None
    low, high = int(ts.min()), int(ts.max())
    sound = int(dur.min()) >= 0 and int(dur.max()) <= LONGEST_NS
    device = np.isin(kind, DEVICE_WORK)
    nothing = device & (ts == 0) & (dur == 0)
    near = low != INVALID and high - low < HOUR_NS
    if sound and near and not len(unmatched) and not nothing.any():
        return None
    missing = ts == INVALID
    negative = ~missing & (dur < 0) & (dur != INVALID)
    negative[unmatched] = False
    absurd = ~missing & ((dur > LONGEST_NS) | (dur == INVALID))
    absurd[unmatched] = False
    usable = ~missing & (ts > 0)
    middle = int(np.median(ts[usable])) if usable.any() else 0
    distance = np.abs(np.where(missing, middle, ts) - middle)
    zero = nothing | (~missing & (ts <= 0) & (distance > HOUR_NS))
    far = ~missing & ~zero & (distance > FAR_NS)
    reasons = (
        ("missing_timestamps", missing, "have no start that is a number"),
        ("zero_timestamps", zero, "start at time 0 or before"),
        ("absurd_timestamps", far, "start more than a week away from the rest"),
        ("negative_duration", negative & ~zero & ~far, "end before they start"),
        (
            "absurd_duration",
            absurd & ~zero & ~far,
            "last longer than a day or have an unreadable length",
        ),
    )
    keep: NDArray[np.bool_] = ~(missing | zero | far | negative | absurd)
    keep[unmatched] = False
    for code, mask, meaning in reasons:
        if mask.any():
            notes.add(_violation(code, mask, device, meaning))
    return keep


def _violation(
    code: str, mask: NDArray[np.bool_], device: NDArray[np.bool_], meaning: str
) -> Violation:
    count, on_device = int(mask.sum()), int((mask & device).sum())
    share = on_device / int(device.sum()) if on_device else count / len(mask)
    whose = "device records" if on_device else "records"
    message = f"Records that {meaning} were left out: {count:,} ({share:.1%} of the {whose})."
    voids: tuple[str, ...] = ()
    if on_device and share > _SMALL_SHARE:
        message += " Kernel totals are incomplete."
        voids = _OF_DEVICES
    return Violation(code=code, message=message, count=count, share=share, voids=voids)
