"""How busy the machine is with other things, right now."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from workbench.machine.cpus import usable_cpus

Done = TypeVar("Done")

SAMPLE_S = 0.25
"""Long enough for a few dozen scheduler ticks on each processor."""
CROWDED = 0.25
"""Own choice, as in WB902: share of our processors that others may take before we say so."""
NOT_BUSY = ("idle", "iowait", "steal", "guest", "guest_nice")
"""Time of guests is part of user time already."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """Competing load; ``None`` where the system does not tell."""

    load_average: float | None
    """Processes that wanted a processor, over the last minute."""
    others_cpu_share: float
    """0 to 1: what others took of the processors that this process may use."""
    steal_share: float | None
    """0 to 1: what the host of this virtual machine took away."""


def load(sample_s: float = SAMPLE_S) -> Load:
    """Watch the processors for ``sample_s`` seconds, doing nothing meanwhile."""
    return load_during(lambda: time.sleep(sample_s))[1]


def load_during(work: Callable[[], Done]) -> tuple[Done, Load]:
    """What some work gives, and what others took meanwhile; programs that it ended are its own."""
    own, before = _own_s(), _spent()
    start = time.perf_counter()
    done = work()
    wall = time.perf_counter() - start
    own, spent = _own_s() - own, {name: end - before[name] for name, end in _spent().items()}
    busy = sum(seconds for name, seconds in spent.items() if name not in NOT_BUSY)
    stolen = spent.get("steal")
    return done, Load(
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        others_cpu_share=_share(busy - own, wall * usable_cpus()),
        steal_share=None if stolen is None else _share(stolen, wall * usable_cpus()),
    )


def _share(seconds: float, of: float) -> float:
    return min(1.0, max(0.0, seconds / of))


def _spent() -> dict[str, float]:
    """Seconds in each state since the start, over the processors that we may run on."""
    import psutil

    each = psutil.cpu_times(percpu=True)
    if hasattr(os, "sched_getaffinity"):
        each = [each[cpu] for cpu in os.sched_getaffinity(0) if cpu < len(each)] or each
    return {name: sum(getattr(cpu, name) for cpu in each) for name in each[0]._fields}


def _own_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
