"""Ranks side by side: where each spends a step, and who waits for whom."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette
from workbench.figures.empty import not_measured
from workbench.figures.ranking import Bar, Row, ranking
from workbench.figures.scale import exact
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_ROWS = 32
_FIXED = frozenset({"rank", "step_ns", "wait_ns"})
_LOOKS = {"host": "host_operators", "copies": "exposed_memory"}
"""Phases that several categories make up take the look of the first of them."""


def rank_times(
    table: "pd.DataFrame | None",
    *,
    straggler: int | None = None,
    deficit_ns: float | None = None,
    reason: str = "a single trace has no other rank to compare with; open a folder of all ranks.",
) -> "go.Figure":
    """Draw a bar a rank, divided into waiting for others and the phases of a step.

    Args:
        table: rank, step_ns, wait_ns, and a column a phase, in nanoseconds a step.
        straggler: The rank that the others wait for, if there is one.
        deficit_ns: How much less it waits a step than the median rank.
        reason: Said when there is nothing to draw.
    """
    if table is None or len(table) < 2:
        return not_measured("Times of the ranks", reason)
    phases = [name for name in table.columns if name not in _FIXED]
    if not phases and not table["wait_ns"].notna().any():
        return not_measured("Times of the ranks", "no rank has a complete step.")
    shown = table
    if len(table) > MOST_ROWS:
        kept = table["wait_ns"].sort_values(na_position="last").index[:MOST_ROWS]
        shown = table.loc[kept].sort_values("rank")
    rows = [_row(record, phases) for record in shown.to_dict("records")]
    subtitle = "a step of each rank, under the profiler"
    if len(shown) < len(table):
        subtitle += f" · the {MOST_ROWS} that wait least of {count_text(len(table))}"
    return ranking(
        headline(table, straggler, deficit_ns), names.plain(subtitle), rows, axis="time a step"
    )


def headline(
    table: "pd.DataFrame", straggler: int | None = None, deficit_ns: float | None = None
) -> str:
    """Who is late, or that the ranks keep together."""
    waits = table["wait_ns"].dropna()
    if not len(waits):
        return "No collective ties these ranks together: who waits for whom is not measured"
    if straggler is not None:
        amount = "" if deficit_ns is None else f" {time_text(deficit_ns)} of each step"
        return f"The ranks wait{amount} for rank {straggler}"
    step = float(table["step_ns"].median())
    most = float(waits.max()) / step if step > 0 else 0.0
    return f"No rank holds up the others; the longest wait is {share_text(most)} of a step"


def _row(record: Mapping[Any, Any], phases: list[str]) -> Row:
    waited = record["wait_ns"]
    known = waited == waited  # noqa: PLR0124  NaN marks what was not measured
    bars = []
    for phase in phases:
        ns = float(record[phase])
        if ns > 0:
            look = palette.category(_LOOKS.get(phase, phase))
            label = look.label if phase not in _LOOKS else phase
            bars.append(_bar(record, label, ns, look.colour))
    if known and waited > 0:
        look = palette.category("exposed_communication_wait")
        bars.append(_bar(record, "waits for other ranks", float(waited), look.colour))
    value = f"waits <b>{time_text(float(waited))}</b>" if known else "wait not measured"
    name = "rank ?" if record["rank"] < 0 else f"rank {int(record['rank'])}"
    return Row(name, value, tuple(bars) or (Bar(0.0, palette.INK, ""),))


def _bar(record: Mapping[Any, Any], label: str, ns: float, colour: str) -> Bar:
    said = f"<b>rank {int(record['rank'])} · {names.plain(label)}</b><br>{exact(ns)} a step"
    return Bar(ns, colour, said)
