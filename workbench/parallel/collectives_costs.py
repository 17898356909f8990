"""What collectives cost: measured times, and a latency and a bandwidth fitted to them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.statistics.link import Link, Timed, bus_factor, fit_link, hops

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pages.static import StaticFigure


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One collective of one size on one back end."""

    backend: str
    collective: str
    bytes: int
    ranks: int
    ns: tuple[int, ...]
    """Of every repetition, of the slowest rank."""

    @property
    def median_ns(self) -> float:
        """The usual time."""
        return float(statistics.median(self.ns))


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectiveCosts:
    """The result of ``workbench.parallel.collectives()``."""

    measured: tuple[Measured, ...]
    world_size: int
    copy_gb_s: float | None
    """What a rank copies in memory while all others copy too: ranks of one machine get no more."""
    absent: Mapping[str, str]
    """Back ends that are not here, and why."""
    notes: tuple[str, ...] = ()

    @cached_property
    def links(self) -> dict[tuple[str, str], Link]:
        """Per back end and collective the fitted link."""
        cases: dict[tuple[str, str], list[Timed]] = {}
        for each in self.measured:
            timed = Timed(
                kind=each.collective, ranks=each.ranks, bytes=each.bytes, ns=each.median_ns
            )
            cases.setdefault((each.backend, each.collective), []).append(timed)
        found = {key: fit_link(timed) for key, timed in cases.items()}
        return {key: link for key, link in found.items() if link is not None}

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row a measurement: backend, collective, bytes, median and least time, bus bandwidth."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "backend": each.backend,
                    "collective": each.collective,
                    "bytes": each.bytes,
                    "repetitions": len(each.ns),
                    "median_ns": each.median_ns,
                    "least_ns": min(each.ns),
                    "bus_gb_s": bus_factor(each.collective, each.ranks)
                    * each.bytes
                    / each.median_ns,
                }
                for each in self.measured
            ]
        )

    @cached_property
    def fits(self) -> pd.DataFrame:
        """A row a back end and collective: latency, bandwidth, share of the machine's, error."""
        import pandas as pd

        rows = []
        for (backend, kind), link in self.links.items():
            rate = link.gb_s
            limit = self.copy_gb_s
            rows.append(
                {
                    "backend": backend,
                    "collective": kind,
                    "latency_ns": link.latency_ns * hops(kind, self.world_size),
                    "bus_gb_s": rate,
                    "of_copy": None if rate is None or not limit else rate / limit,
                    "error": link.error,
                }
            )
        return pd.DataFrame(rows).astype({"bus_gb_s": float, "of_copy": float})

    def fastest(self, collective: str, size: int) -> str | None:
        """The back end with the least median time, if it was measured."""
        own = [m for m in self.measured if (m.collective, m.bytes) == (collective, size)]
        return min(own, key=lambda each: each.median_ns).backend if own else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which back end is faster for which sizes, collective by collective."""
        said = []
        for kind in dict.fromkeys(each.collective for each in self.measured):
            sizes = sorted({each.bytes for each in self.measured if each.collective == kind})
            best = [(size, self.fastest(kind, size)) for size in sizes]
            said.append(f"{kind}: {_runs(best)}")
        return tuple(said)

    def figure(self, collective: str = "all_reduce") -> StaticFigure:
        """Time against size, a line a back end, with the fit and the limit of the machine."""
        from workbench.pages.collective_costs import costs_chart

        return costs_chart(self, collective)

    def __repr__(self) -> str:
        lines = [f"{self.world_size} ranks; fastest by size of the message:", *self.sentences]
        if self.copy_gb_s is not None:
            lines.append(f"limit: a rank copies {self.copy_gb_s:.3g} GB/s in memory")
        shown = self.fits.assign(latency_us=self.fits["latency_ns"] / 1000)
        columns = ["backend", "collective", "latency_us", "bus_gb_s", "of_copy", "error"]
        lines += [shown[columns].round(3).to_string(index=False)]
        lines += [f"not here: {name} ({why})" for name, why in self.absent.items()]
        return "\n".join([*lines, *self.notes])

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any]:
        kinds = [each.collective for each in self.measured]
        first = "all_reduce" if "all_reduce" in kinds else kinds[0]
        return {**self.figure(first)._repr_mimebundle_(**more), "text/plain": repr(self)}


def _runs(best: list[tuple[int, str | None]]) -> str:
    """Neighbouring sizes of one winner together, in words."""
    from workbench.units import bytes_text

    parts: list[tuple[str | None, int, int]] = []
    for size, name in best:
        if parts and parts[-1][0] == name:
            parts[-1] = (name, parts[-1][1], size)
        else:
            parts.append((name, size, size))
    if len(parts) == 1:
        return f"{parts[0][0]} for all sizes"
    return ", ".join(
        f"{name} from {bytes_text(low)} to {bytes_text(high)}"
        if low != high
        else f"{name} at {bytes_text(low)}"
        for name, low, high in parts
    )
