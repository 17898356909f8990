"""Whether everything moved together: then the machine changed rather than every workload."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from workbench.gate.judging import Tested

LEAST_WORKLOADS = 5
"""Own choice: fewer that move together may as well be one change of the code."""
LEAST_SHIFT = 0.03
TOGETHER = 0.9
"""So many of the workloads must lie on the same side of no change."""
CERTAIN = 3.0
"""Standard errors of the median shift."""


@dataclass(frozen=True, kw_only=True)
class CommonShift:
    """By how much all step times moved."""

    log_ratio: float
    workloads: int

    @property
    def change(self) -> float:
        """As a ratio minus 1."""
        return float(np.expm1(self.log_ratio))


def common_shift(found: Mapping[str, Tested]) -> CommonShift | None:
    """The shift that the step times of several workloads have in common, beyond chance.

    Sides that took turns met the same machine: what they have in common is the code's.
    """
    shifts = np.array(
        [
            each.shift.estimate
            for each in found.values()
            if each.shift is not None
            and each.case.metric.name == "step_time"
            and not each.case.interleaved
        ]
    )
    if shifts.size < LEAST_WORKLOADS:
        return None
    middle = float(np.median(shifts))
    deviation = 1.4826 * float(np.median(np.abs(shifts - middle)))
    error = 1.2533 * deviation / float(np.sqrt(shifts.size))
    if abs(middle) < np.log1p(LEAST_SHIFT) or abs(middle) < CERTAIN * error:
        return None
    if np.mean(np.sign(shifts) == np.sign(middle)) < TOGETHER:
        return None
    return CommonShift(log_ratio=middle, workloads=int(shifts.size))


def without(found: Mapping[str, Tested], common: CommonShift) -> dict[str, Tested]:
    """The same cases with the common shift taken out of all ratios of times."""
    made = {}
    for key, each in found.items():
        if each.shift is not None and each.case.metric.log_scale():
            sign = common.log_ratio
            shift = replace(each.shift, estimate=each.shift.estimate - sign, b=each.shift.b - sign)
            made[key] = replace(each, shift=shift)
        else:
            made[key] = each
    return made
