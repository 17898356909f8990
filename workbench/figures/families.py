"""Kernel families: what kind of work the device spends its time in."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette
from workbench.figures.empty import not_measured
from workbench.figures.kernels import NO_KERNEL, colour_of
from workbench.figures.ranking import Bar, Row, ranking
from workbench.figures.scale import exact
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

UNCLASSIFIED = "other"


def family_times(
    table: "pd.DataFrame | None",
    *,
    limit: int = 12,
    reason: str = NO_KERNEL,
) -> "go.Figure":
    """Draw the families of kernels with the longest total time.

    Args:
        table: device, family, kernels, calls, total_ns, share, tensor_core_share, occupancy.
        limit: How many are drawn.
        reason: Said when there is nothing to draw.
    """
    if table is None or not len(table) or not table["total_ns"].sum():
        return not_measured("Families of kernels", reason)
    ranked = table.sort_values("total_ns", ascending=False, kind="stable")
    total = float(ranked["total_ns"].sum())
    several = ranked["device"].nunique() > 1
    rows = [
        _row(record, total, several=several) for record in ranked.head(limit).to_dict("records")
    ]
    other = float(ranked["total_ns"][ranked["family"] == UNCLASSIFIED].sum()) / total
    known = f"not classified: {share_text(other)}" if other else "all of it classified"
    return ranking(
        names.plain(headline(ranked)),
        names.plain(f"{time_text(total)} of kernels, copies and sets · {known}"),
        rows,
        axis="total time of the family",
    )


def headline(ranked: "pd.DataFrame") -> str:
    """Which family takes most."""
    sums = ranked.groupby("family")["total_ns"].sum().sort_values(ascending=False)
    first, share = str(sums.index[0]), float(sums.iloc[0]) / float(sums.sum())
    what = "kernels of no known family" if first == UNCLASSIFIED else f"{_words(first)} kernels"
    return f"{what[0].upper()}{what[1:]} take {share_text(share)} of the device's work"


def _row(record: Mapping[Hashable, Any], total: float, *, several: bool) -> Row:
    family, ns = str(record["family"]), float(record["total_ns"])
    label = "not classified" if family == UNCLASSIFIED else _words(family)
    said = [
        f"<b>{names.plain(label)}</b>",
        f"{exact(ns)}, {share_text(ns / total)} of all",
        f"{count_text(record['kernels'])} kernels, {count_text(record['calls'])} calls",
    ]
    for name, what in (("tensor_core_share", "on tensor cores"), ("occupancy", "mean occupancy")):
        share = float(str(record[name]))
        if share == share:  # noqa: PLR0124  NaN marks what was not measured
            said.append(f"{what}: {share_text(share)}")
    colour = _UNKNOWN if family == UNCLASSIFIED else colour_of(family, "")
    value = f"{time_text(ns)}  <b>{share_text(ns / total)}</b>  × {count_text(record['calls'])}"
    shown = f"{record['device']} · {label}" if several else label
    return Row(shown, value, (Bar(ns, colour, "<br>".join(said)),))


def _words(family: str) -> str:
    return family.replace("_", " ")


_UNKNOWN = palette.category("unknown").colour
