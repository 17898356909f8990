"""From the measured time of operators down to their roof: what each could win at most."""

from typing import TYPE_CHECKING

from workbench.figures import names, palette
from workbench.figures.empty import not_measured
from workbench.figures.ranking import Bar, Row, ranking
from workbench.figures.scale import exact
from workbench.units import share_text, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST = 8
REST = "all others"


def roof_waterfall(
    table: "pd.DataFrame | None",
    *,
    source: str = "",
    coverage: float | None = None,
    reason: str = "no operator with a known roof was recorded.",
) -> "go.Figure":
    """Draw the measured time, what each operator is above its roof, and the roof.

    Args:
        table: name, time_ns, distance_ns; what has no roof is left out and told as a share.
        source: Where the peaks are from.
        coverage: Share of all time whose roof is known.
        reason: Said when there is nothing to draw.
    """
    known = None if table is None else table[table["distance_ns"].notna()]
    if known is None or not known["time_ns"].sum():
        return not_measured("From the measured step to the roof", reason)
    total = float(known["time_ns"].sum())
    far = known.groupby("name")["distance_ns"].sum().sort_values(ascending=False)
    steps = [(str(name), float(ns)) for name, ns in far.head(MOST).items() if ns > 0]
    rest = float(far.sum()) - sum(ns for _, ns in steps)
    steps += [(REST, rest)] if rest > 0.5 else []
    bars, at = [("measured", 0.0, total, _WHOLE)], total
    for name, ns in steps:
        at -= ns
        bars.append((name, at, ns, _WON))
    bars.append(("at the roof", 0.0, at, _ROOF))
    said = "" if coverage is None else f" · {share_text(coverage)} of all time has a known roof"
    share = share_text(at / total)
    title = f"At their roof the operators would take {share} of their time"
    return ranking(
        names.plain(f"{title}; {steps[0][0]} could win most" if steps else title),
        names.plain(f"{time_text(total)} a step · roof: {source}{said}"),
        [_row(name, start, ns, colour, total) for name, start, ns, colour in bars],
        axis="time a step",
    )


def _row(name: str, start: float, ns: float, colour: str, total: float) -> Row:
    sign = "− " if colour is _WON else ""
    hover = f"<b>{names.plain(name)}</b><br>{exact(ns)}<br>{share_text(ns / total)} of the time"
    return Row(name, f"<b>{sign}{time_text(ns)}</b>", (Bar(ns, colour, hover),), start)


_WHOLE = "#5A5A5A"
_WON = palette.category("host_other").colour
_ROOF = palette.category("compute").colour
