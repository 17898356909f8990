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
    total = float(ranked[column].sum())
    where = "device" if on_device else "host"
    rows = [_row(record, column, total) for record in ranked.head(limit).to_dict("records")]
    counted = "kernels that an operator launched itself" if on_device else "nested ones left out"
    subtitle = f"{time_text(total)} of {where} time, {counted}"
    left = len(ranked) - len(rows)
    if left:
        rest = float(ranked[column].iloc[limit:].sum()) / total
        subtitle += f" · not drawn: {count_text(left)} more with {share_text(rest)}"
    first = ranked.iloc[0]
    share = share_text(float(first[column]) / total)
    return ranking(
        f"{names.label(str(first['name']), 40)} takes {share} of the operators' {where} time",
        names.plain(subtitle),
        rows,
        axis="device time" if on_device else "host time without nested operators",
    )


def _row(record: Mapping[Hashable, Any], column: str, total: float) -> Row:
    name, ns, calls = str(record["name"]), float(record[column]), int(record["calls"])
    said = [
        f"<b>{names.full(name)}</b>",
        f"{count_text(calls)} call{'s' if calls != 1 else ''}",
        f"host, itself: {exact(float(str(record['host_self_ns'])))}",
        f"host, with nested: {exact(float(str(record['host_total_ns'])))}",
    ]
    if column == "device_ns":
        said.append(f"device: {exact(ns)}")
    look = palette.category("compute" if column == "device_ns" else "host_operators")
    value = f"{time_text(ns)}  <b>{share_text(ns / total)}</b>  × {count_text(calls)}"
    return Row(name, value, (Bar(ns, look.colour, "<br>".join(said)),))
