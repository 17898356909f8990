"""The charts of a rank's work and its roof."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.pages.cost_charts import (
    gemms_chart,
    module_chart,
    roof_waterfall_chart,
    roofline_chart,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.pages.static import StaticFigure
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run


def roofline(_: Run, rank: RankAnalysis) -> StaticFigure:
    """Operators below the roof of their device."""
    from workbench.analysis.costs.roofline import by_kind
    from workbench.run.costs import per_step

    found, peaks = rank.costs.roofline, rank.costs.peaks
    if found is None or peaks is None:
        return roofline_chart(None, reason=f"{rank.costs.no_roof}.")
    return roofline_chart(
        rank.costs.roof_table,
        peaks=dict(peaks.flops_per_s),
        bytes_per_s=peaks.bytes_per_s,
        source=_source(rank),
        kinds=per_step(by_kind(found), found.steps),
        reason="the bandwidth of the memory is not known.",
    )


def roof_waterfall(_: Run, rank: RankAnalysis) -> StaticFigure:
    """From the measured time of operators down to their roof."""
    found = rank.costs.roofline
    if found is None:
        return roof_waterfall_chart(None, reason=f"{rank.costs.no_roof}.")
    return roof_waterfall_chart(
        rank.costs.roof_table, source=_source(rank), coverage=found.coverage
    )


def gemms(_: Run, rank: RankAnalysis) -> StaticFigure:
    """Matrix products by size and speed."""
    found = rank.costs.gemms
    if found is None:
        reason = rank.costs.no_roof
        if rank.costs.roofline is not None:
            reason = "no matrix product with its shapes was recorded"
        return gemms_chart(None, reason=f"{reason}.")
    return gemms_chart(found, source=_source(rank))


def modules(_: Run, rank: RankAnalysis, *, by: Any) -> StaticFigure:
    """The tree of modules."""
    found = rank.costs.by_module
    source = "" if found is None else str(found.attrs.get("source") or "")
    return module_chart(found, by=by, source=source, reason=f"{rank.costs.no_modules}.")


def _source(rank: RankAnalysis) -> str:
    peaks = rank.costs.peaks
    return "" if peaks is None else peaks.source


COST_CHARTS: dict[str, Callable[[Run, RankAnalysis], StaticFigure]] = {
    "roofline": roofline,
    "roof_waterfall": roof_waterfall,
    "gemms": gemms,
    "module_tree": partial(modules, by="time"),
    "module_flops": partial(modules, by="flops"),
    "module_bytes": partial(modules, by="bytes"),
}
