"""Steps whose scaled gradients were checked for overflow, and those in which no optimizer ran.

``GradScaler`` checks all gradients in one operator and calls the optimizer only if none overflowed,
so a checked step without the optimizer's range was skipped. A fused optimizer decides that on the
device, inside its own step: then nothing tells.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.optimizer_launches import STEP_RANGE
from workbench.analysis.steady import counted_ranges
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

CHECK = re.compile(r"^aten::_amp_foreach_non_finite_check_and_unscale_$")
FUSED = re.compile(r"^aten::_fused_\w+_$")


@dataclass(frozen=True, kw_only=True)
class ScaledSteps:
    """Loss scaling in the steps that count."""

    checked: int
    """Steps in which scaled gradients were checked."""
    skipped: int | None
    """Of these, steps without an optimizer's step; ``None`` where a fused one decides itself."""
    last_skipped: bool
    """Whether the last of them was skipped."""


def scaled_steps(trace: Trace, steps: Steps | None) -> ScaledSteps | None:
    """Count them; ``None`` without steps or without loss scaling."""
    ranges = counted_ranges(steps)
    if ranges is None:
        return None
    checked = _steps_with(trace, CHECK, ranges, Kind.OPERATOR)
    if not checked.any():
        return None
    if _steps_with(trace, FUSED, ranges, Kind.OPERATOR).any():
        return ScaledSteps(checked=int(checked.sum()), skipped=None, last_skipped=False)
    stepped = _steps_with(trace, STEP_RANGE, ranges, Kind.ANNOTATION, Kind.OPERATOR)
    skipped = checked & ~stepped
    if not stepped.any() and not _steps_with(trace, STEP_RANGE, None, Kind.ANNOTATION).any():
        # An optimizer of the user's own marks no range: whether it ran cannot be seen.
        return ScaledSteps(checked=int(checked.sum()), skipped=None, last_skipped=False)
    return ScaledSteps(
        checked=int(checked.sum()),
        skipped=int(skipped.sum()),
        last_skipped=bool(skipped[np.flatnonzero(checked)[-1]]),
    )


def _steps_with(
    trace: Trace,
    pattern: re.Pattern[str],
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    *kinds: Kind,
) -> NDArray[np.bool_]:
    """For each step, whether an event of this name begins in it; without ranges one answer."""
    events = trace.events
    codes = trace.name_codes(lambda name: pattern.match(name) is not None)
    at = events.ts[np.flatnonzero(events.of_kind(*kinds) & np.isin(events.name, codes))]
    if ranges is None:
        return np.array([len(at) > 0])
    at = np.sort(at)
    first, last = np.searchsorted(at, ranges[0]), np.searchsorted(at, ranges[1])
    return np.asarray(last > first, bool)
