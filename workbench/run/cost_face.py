"""What a Run answers about the work of its operators, and how near it is to the device's peak."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.costs.peaks import Peaks
    from workbench.analysis.costs.utilisation import Utilisation
    from workbench.run.headline import Headline
    from workbench.run.rank import RankAnalysis


def costs_not_measured(run: CostFace) -> dict[str, str]:
    """Why tables of work and roof are ``None``."""
    first = run.ranks[0].costs
    reasons = {}
    if all(rank.costs.costs is None for rank in run.ranks):
        reasons["costs"] = first.no_costs
    if all(rank.costs.roofline is None for rank in run.ranks):
        reasons["roofline"] = first.no_roof
        reasons["gemms"] = first.no_roof
    elif all(rank.costs.gemms is None for rank in run.ranks):
        reasons["gemms"] = "no matrix product with its shapes was recorded"
    if all(rank.costs.by_module is None for rank in run.ranks):
        reasons["module_costs"] = first.no_modules
    return reasons


class CostFace:
    """The part of a Run that is about FLOPs, bytes and the roof."""

    ranks: tuple[RankAnalysis, ...]
    _table: Callable[..., pd.DataFrame | None]

    @cached_property
    def costs(self) -> pd.DataFrame | None:
        """FLOPs, bytes and time of operators by shape and type, per step; or why none is known."""
        return self._table(lambda rank: rank.costs.cost_table)

    @property
    def roofline(self) -> pd.DataFrame | None:
        """Operators against the roof of the device, farthest first: time, least time, distance."""
        return self._table(lambda rank: rank.costs.roof_table)

    @property
    def gemms(self) -> pd.DataFrame | None:
        """Matrix products by shape: layout, alignment, tensor cores, speed, advice, its bound."""
        return self._table(lambda rank: rank.costs.gemms)

    @property
    def module_costs(self) -> pd.DataFrame | None:
        """Time, FLOPs and bytes by module, forward and backward; rows of depth 0 sum to all.

        ``attrs["source"]`` says who told the modules: one more step, or the records of the trace.
        """
        return self._table(lambda rank: rank.costs.by_module)

    @property
    def utilisation(self) -> Utilisation:
        """HFU, MFU, samples and tokens a second of the first rank; missing ones with a reason."""
        return self.ranks[0].costs.utilisation

    @property
    def headline(self) -> Headline | None:
        """The step as a sum: its work and how near the roof, what else, and what could go."""
        from workbench.run.headline import headline

        return headline(self)  # type: ignore[arg-type]

    @property
    def peaks(self) -> Peaks | None:
        """What the device can do at most: measured there, else by its datasheet."""
        return self.ranks[0].costs.peaks

    @peaks.setter
    def peaks(self, found: Peaks | Mapping[str, Any] | None) -> None:
        """Take other peaks, such as those that ``workbench.machine.peaks.measure()`` gives."""
        from workbench.analysis.costs.peaks import Peaks, peaks_from
        from workbench.errors import RunError

        chosen = found if found is None or isinstance(found, Peaks) else peaks_from(found)
        if found is not None and chosen is None:
            raise RunError("these are no peaks: give what workbench.machine.peaks.measure() gives.")
        for rank in self.ranks:
            rank.costs.peaks = chosen
