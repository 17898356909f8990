"""Kernel times: which kernels the device spends its time in."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette
from workbench.figures.empty import not_measured
from workbench.figures.ranking import Bar, Row, ranking
from workbench.figures.scale import exact
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

NO_KERNEL = "the trace holds no kernel; profile on a device, or open a trace that has one."
_ENOUGH = 0.8


def kernel_times(
    table: "pd.DataFrame | None",
    *,
    limit: int = 12,
    reason: str = NO_KERNEL,
) -> "go.Figure":
    """Draw the kernels with the longest total time.

    Args:
        table: device, name, family, calls, total_ns, median_ns, share, tensor_core.
        limit: How many are drawn.
        reason: Said when there is nothing to draw.
    """
    if table is None or not len(table) or not table["total_ns"].sum():
        return not_measured("Kernel times", reason)
    ranked = table.sort_values("total_ns", ascending=False, kind="stable")
    total = float(ranked["total_ns"].sum())
    devices = ranked["device"].nunique()
    rows = [
        _row(record, total, several=devices > 1) for record in ranked.head(limit).to_dict("records")
    ]
    left = len(ranked) - len(rows)
    calls = int(ranked["calls"].sum())
    subtitle = f"{time_text(total)}, summed over {count_text(calls)} kernel{'s' * (calls != 1)}"
    subtitle += ", copies and sets included"
    if left:
        rest = float(ranked["total_ns"].iloc[limit:].sum()) / total
        subtitle += f" · not drawn: {count_text(left)} more with {share_text(rest)}"
    return ranking(
        names.plain(headline(ranked["total_ns"].tolist())),
        names.plain(subtitle),
        rows,
        axis="total time of the kernel",
    )


def headline(totals_ns: Sequence[float]) -> str:
    """How few kernels hold most of the time."""
    total, held, few = sum(totals_ns), 0.0, 0
    for held_by in totals_ns:
        held += held_by
        few += 1
        if held >= _ENOUGH * total:
            break
    if len(totals_ns) == 1:
        return "One kernel takes all of the kernel time"
    kernels = f"{count_text(few)} of {count_text(len(totals_ns))} kernels"
    take = "takes" if few == 1 else "take"
    return f"{kernels} {take} {share_text(held / total)} of the kernel time"


def colour_of(family: object, name: str) -> str:
    """Communication and copies keep their colours; every other kernel computes."""
    if family == "communication":
        return palette.category("communication").colour
    if name.lower().startswith(("memcpy", "memset")):
        return palette.category("memory").colour
    return palette.category("compute").colour


def _row(record: Mapping[Hashable, Any], total: float, *, several: bool) -> Row:
    name, ns = str(record["name"]), float(record["total_ns"])
    calls = int(record["calls"])
    said = [
        f"<b>{names.full(name)}</b>",
        f"device {record['device']} · {names.plain(str(record.get('family') or 'other'))}",
        f"{exact(ns)} in {count_text(calls)} call{'s' if calls != 1 else ''}",
        f"median {exact(float(str(record['median_ns'])))}",
        f"{share_text(ns / total)} of all kernel time",
    ]
    if record.get("tensor_core") in (True, False):
        said.append(f"tensor cores: {'yes' if record['tensor_core'] else 'no'}")
    value = f"{time_text(ns)}  <b>{share_text(ns / total)}</b>  × {count_text(calls)}"
    shown = f"{record['device']} · {name}" if several else name
    return Row(shown, value, (Bar(ns, colour_of(record.get("family"), name), "<br>".join(said)),))
