"""The upper bound of a gain in words, and why it is not the share of time that a title names."""

from workbench.findings.finding import Finding
from workbench.units import share_text, significant, time_text

LEAST_SPEEDUP = 1.005
"""Below it "1.00 times as fast" says nothing."""
FAR_BELOW, FAR_ABOVE = 0.75, 1.25
"""Own choice: a gain is as large as the share that it ends, unless it is so many times that."""
APART = 0.03
"""Own choice: of the step, a difference that nobody would ask about."""

_OF_THE_STEP = ("WB107", "WB201", "WB202", "WB203", "WB209", "WB401")
"""Codes whose share is time that is gone when the cause is: the gain would be just that."""


def bound(finding: Finding) -> str | None:
    """The upper bound of the gain in words."""
    saving, speedup = finding.saving_ns_per_step_at_most, finding.speedup_at_most
    faster = None
    if speedup is not None and speedup >= LEAST_SPEEDUP:
        less = share_text(1 - 1 / speedup)
        faster = f"{less} less time, {significant(speedup)} times as fast"
    if saving is None:
        return None if faster is None else f"at most {faster}"
    said = f"at most {time_text(saving)} a step" + (f" ({faster})" if faster else "")
    why = _beside_the_share(finding)
    return f"{said}; {why}" if why else said


def _beside_the_share(finding: Finding) -> str | None:
    """Why the gain is far from the share of time that the cause takes, where it is."""
    share, speedup = finding.share_of_window, finding.speedup_at_most
    told = finding.code in _OF_THE_STEP and finding.verdict == "yes"
    if not told or share is None or speedup is None:
        return None
    gained = 1 - 1 / speedup
    if abs(gained - share) < APART:
        return None
    if gained > FAR_ABOVE * share:
        return f"more than the {share_text(share)} above, since {_adds(finding)}"
    if gained < FAR_BELOW * share:
        return f"less than the {share_text(share)} above, since {_holds(finding)}"
    return None


def _adds(finding: Finding) -> str:
    if _is_measured(finding):
        return "that is a share of steps under the profiler, which take longer"
    return "a host that runs ahead hides other waits as well"


def _is_measured(finding: Finding) -> bool:
    """Whether the gain is of steps without the profiler."""
    return finding.origin is not None and finding.origin.median_step_ns is not None


def _holds(finding: Finding) -> str:
    if _is_measured(finding):
        return "other work then sets the pace, and the profiler lengthens what the host does"
    return "other work then sets the pace"
