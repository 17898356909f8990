"""How busy the machine was with other things while we measured."""

import os
import time
from typing import Any

from workbench.machine.competing_load import NOT_BUSY


class LoadProbe:
    """Load average before and after, and the share of our processors that others used."""

    def __init__(self) -> None:
        self._cpus = _our_cpus()
        self._before = _average()
        self._wall = time.perf_counter()
        self._all, self._own = _busy_s(self._cpus), own_cpu_s()

    def others_cpu_s(self) -> float:
        """Seconds that others used of the processors that this process may use, so far."""
        return max(0.0, (_busy_s(self._cpus) - self._all) - (own_cpu_s() - self._own))

    def to_json(self) -> dict[str, Any]:
        """``others_cpu_share`` is 0 to 1 of the processors that this process may use."""
        wall = time.perf_counter() - self._wall
        others = self.others_cpu_s()
        share = others / (wall * len(self._cpus)) if wall > 0 and self._cpus else None
        return {
            "load_average_before": self._before,
            "load_average_after": _average(),
            "others_cpu_share": None if share is None else round(min(max(share, 0.0), 1.0), 3),
        }


def _average() -> float | None:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _our_cpus() -> list[int]:
    import psutil

    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(psutil.cpu_count() or 1))


def _busy_s(cpus: list[int]) -> float:
    """Seconds that the given processors were at work, since the machine started."""
    import psutil

    each = psutil.cpu_times(percpu=True)
    return sum(
        float(seconds)
        for cpu in cpus
        if cpu < len(each)
        for state, seconds in each[cpu]._asdict().items()
        if state not in NOT_BUSY
    )


def own_cpu_s() -> float:
    """Processor seconds of this process and its children, those that ended included."""
    import psutil

    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.Error:
            continue
        total += used.user + used.system
        total += getattr(used, "children_user", 0.0) + getattr(used, "children_system", 0.0)
    return total
