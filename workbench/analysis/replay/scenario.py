"""What is imagined: causes that cost nothing, work that runs faster, stretches that are gone."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workbench.analysis.causes import CAUSES
from workbench.analysis.families import MATRIX_FAMILIES
from workbench.errors import TraceError

HOST_FREE = ("launch", "host_operators", "host_python", "host_other")
"""What a graph of the device, or a compiler, may take away together."""
HOST_CAUSES = frozenset(CAUSES) - {"kernel_gap", "unknown"}
"""Causes whose time the profiler inflates, so that their savings are capped."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One what-if; two of them together are ``one.also(other)``."""

    name: str
    """Stable name: a cause, ``host``, ``communication``, ``memory``, ``family:gemm``, …"""
    label: str
    causes: frozenset[str] = frozenset()
    """Host code and lags of these causes take no time, and their waits are gone."""
    faster: Mapping[str, float] = field(default_factory=dict)
    """Kernel family and how many times faster it runs."""
    hidden: frozenset[str] = frozenset()
    """Classes of work (communication, memory) that nothing waits for any more."""
    late_ranks: bool = False
    """Collectives take no longer than their transfer."""
    gone: tuple[tuple[int, int], ...] = ()
    """Stretches on the host's clock in which neither host code nor spacing takes time."""

    def __post_init__(self) -> None:
        unknown = self.causes - frozenset(CAUSES)
        if unknown:
            raise TraceError(
                f"no cause of idle is called {', '.join(sorted(unknown))}: "
                f"choose from {', '.join(CAUSES)}."
            )
        if any(times < 1 for times in self.faster.values()):
            raise TraceError("a kernel family can only be made faster: give a factor of 1 or more.")

    @property
    def on_host(self) -> bool:
        """Whether it changes host code at all."""
        return bool(self.causes & HOST_CAUSES) or bool(self.gone)

    @property
    def causes_only(self) -> bool:
        """Whether it frees causes and changes nothing else."""
        return not (self.faster or self.hidden or self.late_ranks or self.gone)

    def also(self, other: "Scenario") -> "Scenario":
        """Both at once."""
        families = {*self.faster, *other.faster}
        return Scenario(
            name=f"{self.name}+{other.name}",
            label=f"{self.label}, {other.label}",
            causes=self.causes | other.causes,
            faster={f: max(self.faster.get(f, 1), other.faster.get(f, 1)) for f in families},
            hidden=self.hidden | other.hidden,
            late_ranks=self.late_ranks or other.late_ranks,
            gone=(*self.gone, *other.gone),
        )


NOTHING_CHANGED = Scenario(name="measured", label="as measured")

CAUSE_LABELS: Mapping[str, str] = {
    "kernel_gap": "no spacing between kernels",
    "launch": "launches free",
    "kernel_loading": "kernels loaded before",
    "input": "loader free",
    "allocation": "no memory allocation",
    "graph_capture": "no graph capture",
    "compilation": "no compilation",
    "profiler": "no profiler",
    "synchronization": "no synchronization",
    "garbage_collection": "no garbage collection",
    "host_operators": "operators on the host free",
    "host_python": "Python on the host free",
    "host_other": "other host code free",
}


def without_cause(cause: str) -> Scenario:
    """A cause of idle gone, by its name."""
    label = CAUSE_LABELS.get(cause, f"no {cause.replace('_', ' ')}")
    return Scenario(name=cause, label=label, causes=frozenset({cause}))


def host_free() -> Scenario:
    """Launches and all host code around them free, as when a graph is replayed."""
    return Scenario(name="host", label="launches and host code free", causes=frozenset(HOST_FREE))


def hidden(work_class: str) -> Scenario:
    """Communication or copies hidden: nothing waits for them, but they still have to fit."""
    said = {"communication": "communication hidden", "memory": "copies hidden"}[work_class]
    return Scenario(name=work_class, label=said, hidden=frozenset({work_class}))


def without_late_ranks() -> Scenario:
    """No collective waits for a late rank."""
    return Scenario(name="late_ranks", label="no rank late", late_ranks=True)


def faster_family(family: str, times: float = 2.0) -> Scenario:
    """A kernel family some times faster."""
    return Scenario(
        name=f"family:{family}", label=f"{family} {times:g}× faster", faster={family: times}
    )


def half_precision(families: Iterable[str]) -> Scenario:
    """The most that a type of half the bytes can do: free products, all other work twice as fast.

    Args:
        families: All kernel families of the steps.
    """
    return Scenario(
        name="half_precision",
        label="half precision at its best",
        faster={name: math.inf if name in MATRIX_FAMILIES else 2.0 for name in families},
    )


def tf32_products() -> Scenario:
    """The most that TF32 can do: free products and convolutions."""
    free = dict.fromkeys(("gemm", "convolution"), math.inf)
    return Scenario(name="tf32_products", label="TF32 at its best", faster=free)


def without_gap(start: int, end: int) -> Scenario:
    """One stretch of the host's clock gone, such as an idle gap."""
    return Scenario(name=f"gap:{start}", label="this gap gone", gone=((start, end),))
