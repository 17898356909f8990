"""Operator times: host time of its own, and the device time that an operator launched."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette
from workbench.figures.empty import not_measured
from workbench.figures.ranking import Bar, Row, ranking
from workbench.figures.scale import exact
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


def operator_times(
    table: "pd.DataFrame | None",
    *,
    limit: int = 12,
    reason: str = "the trace holds no operator; record CPU activity.",
) -> "go.Figure":
    """Draw the operators with the longest device time, or host time where no device was recorded.

    Args:
        table: name, calls, host_self_ns, host_total_ns, device_ns (missing = not measured).
        limit: How many are drawn.
        reason: Said when there is nothing to draw.
    """
    if table is None or not len(table) or not table["host_self_ns"].sum():
        return not_measured("Operator times", reason)
    on_device = bool(table["device_ns"].notna().any() and table["device_ns"].fillna(0).sum())
    column = "device_ns" if on_device else "host_self_ns"
    filled = table.assign(**{column: table[column].fillna(0)})
    ranked = filled.sort_values(column, ascending=False, kind="stable")
    ranked = ranked[ranked[column] > 0]
    rows = [_row(record, column) for record in ranked.head(limit).to_dict("records")]
    left = len(ranked) - len(rows)
    return ranking(
        _headline(ranked, column),
        f"{_COUNTED[column]}{f' · not drawn: {count_text(left)} more' if left else ''}",
        rows,
        axis=_AXES[column],
    )


_AXES = {
    "device_ns": "device time launched inside the operator",
    "host_self_ns": "host time without nested operators",
}
_COUNTED = {
    "device_ns": "an operator holds what it called, so rows overlap and do not add up",
    "host_self_ns": "nested operators left out, so rows add up",
}


def _headline(ranked: "pd.DataFrame", column: str) -> str:
    first = ranked.iloc[0]
    name, ns = names.label(str(first["name"]), 40), float(first[column])
    if column == "device_ns":
        return f"Most device time is launched inside {name}: {time_text(ns)}"
    return (
        f"{name} takes {share_text(ns / float(ranked[column].sum()))} of the operators' host time"
    )


def _row(record: Mapping[Hashable, Any], column: str) -> Row:
    name, ns, calls = str(record["name"]), float(record[column]), int(record["calls"])
    said = [
        f"<b>{names.full(name)}</b>",
        f"{count_text(calls)} call{'s' if calls != 1 else ''}",
        f"host, itself: {exact(float(str(record['host_self_ns'])))}",
        f"host, with nested: {exact(float(str(record['host_total_ns'])))}",
    ]
    if column == "device_ns":
        said.append(f"device, with nested: {exact(ns)}")
    look = palette.category("compute" if column == "device_ns" else "host_operators")
    value = f"<b>{time_text(ns)}</b>  × {count_text(calls)}"
    return Row(name, value, (Bar(ns, look.colour, "<br>".join(said)),))
