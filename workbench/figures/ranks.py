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
LEAST_REST = 0.005
"""Share of a step from which its rest is drawn: mostly transfers that no compute hides."""
LEAST_NAMED = 0.005
"""Share of the longest step from which a colour is named; the hover text names every part."""
REST = "the rest of the step"
_FIXED = frozenset({"rank", "step_ns", "wait_ns", "transfer_ns"})
_LOOKS = {"host": "host_operators", "copies": "exposed_memory"}
"""Phases that several categories make up take the look of the first of them."""


def rank_times(
    table: "pd.DataFrame | None",
    *,
    straggler: int | None = None,
    waited_ns: float | None = None,
    reason: str = "a single trace has no other rank to compare with; open a folder of all ranks.",
) -> "go.Figure":
    """Draw a bar a rank, divided into waiting for others and the phases of a step.

    Args:
        table: rank, step_ns, wait_ns, transfer_ns, and a column a phase, in nanoseconds a step.
        straggler: The rank that the others wait for, if there is one.
        waited_ns: How much longer than it the median of the others waits a step, as WB402 says it.
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
        headline(table, straggler, waited_ns),
        names.plain(subtitle),
        rows,
        axis="time a step",
        legend=_legend(shown, phases),
    )


def headline(
    table: "pd.DataFrame", straggler: int | None = None, waited_ns: float | None = None
) -> str:
    """Who is late, or that the ranks keep together."""
    waits = table["wait_ns"].dropna()
    if not len(waits):
        return "No collective ties these ranks together: who waits for whom is not measured"
    if straggler is not None:
        amount = "" if waited_ns is None else f" {time_text(waited_ns)} of each step"
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
            bars.append(_bar(record, *_look(phase), ns))
    if known and waited > 0:
        bars.append(_bar(record, *_WAIT, float(waited)))
    rest = _rest(record, phases)
    if rest > 0:
        bars.append(_bar(record, *_REST, rest))
    value = f"waits <b>{time_text(float(waited))}</b>" if known else "wait not measured"
    name = "rank ?" if record["rank"] < 0 else f"rank {int(record['rank'])}"
    return Row(name, value, tuple(bars) or (Bar(0.0, palette.INK, ""),))


_WAIT = ("waits for other ranks", palette.category("exposed_communication_wait").colour)
_REST = (REST, palette.GRID)


def _look(phase: str) -> tuple[str, str]:
    """Label and colour of a phase."""
    look = palette.category(_LOOKS.get(phase, phase))
    return phase if phase in _LOOKS else look.label, look.colour


def _rest(record: Mapping[Any, Any], phases: list[str]) -> float:
    """What the phases and the wait leave of the step; 0 where that is little or unknown."""
    told = sum(float(record[phase]) for phase in phases if record[phase] > 0)
    rest = float(record["step_ns"]) - told - float(record["wait_ns"])
    return rest if rest > LEAST_REST * record["step_ns"] else 0.0


def _legend(shown: "pd.DataFrame", phases: list[str]) -> dict[str, str]:
    """What every colour of the bars says."""
    least = LEAST_NAMED * shown["step_ns"].max()
    said = dict(_look(phase) for phase in phases if shown[phase].gt(least).any())
    if shown["wait_ns"].gt(0).any():
        said.update([_WAIT])
    if any(_rest(record, phases) > 0 for record in shown.to_dict("records")):
        said.update([_REST])
    return said


def _bar(record: Mapping[Any, Any], label: str, colour: str, ns: float) -> Bar:
    said = f"<b>rank {int(record['rank'])} · {names.plain(label)}</b><br>{exact(ns)} a step"
    return Bar(ns, colour, said)
