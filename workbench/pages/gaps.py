"""The table of the longest idle gaps: when, why, and what the host did meanwhile."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures.breakdown import Doubt
from workbench.figures.names import shorten
from workbench.figures.palette import category
from workbench.pages.table import Column, Table
from workbench.units import share_text, time_text

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 20
MOST_NAMED = 2
"""Causes of a gap that are named; those below ``LEAST_SHARE`` of it are not."""
LEAST_SHARE = 0.01
LONGEST = 80
NO_STEP = "none"
AHEAD = "it ran ahead, the work was queued"
LAST = "nothing that was recorded"
DOUBTS: dict[Doubt | None, str] = {
    None: "",
    "times": "; not certain: a profile fails its own checks",
    "causes": "; causes are not certain: a profile fails its own checks",
}


def gaps_table(frame: "pd.DataFrame", *, limit: int = LIMIT, doubt: Doubt | None = None) -> Table:
    """The longest gaps of the window, of all its devices and ranks, longest first."""
    ranked = frame.sort_values("length_ns", ascending=False, kind="stable")
    owners = [name for name in ("rank", "device") if name in frame.columns]
    total = int(frame.drop_duplicates(owners)["gaps"].sum())
    several = [name for name in owners if frame[name].nunique() > 1]
    sources = bool(frame["source"].notna().any())
    uncertain = bool((frame["uncertainty_ns"] > 0).any())
    columns = [Column(name=name, kind="value") for name in several]
    columns += [
        Column(name="at, in the window", kind="time"),
        Column(name="length", kind="time"),
        Column(name="step", kind="value"),
        Column(name="why", kind="text"),
        Column(name="the host meanwhile", kind="name"),
        Column(name="of the gap", kind="share"),
        Column(name="thread", kind="name"),
        Column(name="ended by", kind="name"),
        *([Column(name="source line", kind="name")] if sources else []),
        *([Column(name="clock, ±", kind="time")] if uncertain else []),
    ]
    rows = []
    for row in ranked.head(limit).to_dict("records"):
        cells: list[object] = [str(row[name]) for name in several]
        cells += [row["in_window_ns"], row["length_ns"], _step(row), _why(row), *_host(row)]
        cells += [_text(row["thread"]), _ended_by(row)]
        cells += [None if _unknown(row) else _text(row["source"])] if sources else []
        cells += [row["uncertainty_ns"]] if uncertain else []
        rows.append(tuple(cells))
    return Table(
        caption=f"The longest idle gaps in the window{DOUBTS[doubt]}",
        columns=tuple(columns),
        rows=tuple(rows),
        left_out=total - len(rows),
    )


def _step(row: "dict[Any, Any]") -> str:
    import pandas as pd

    return NO_STEP if pd.isna(row["step"]) else str(row["step"])


def _why(row: "dict[Any, Any]") -> str:
    named = [(category(name).label, ns) for name, ns in row["causes"]]
    said = _listed(named, row["length_ns"])
    if row["unrecorded_ns"]:
        said += f" ({time_text(row['unrecorded_ns'])} of work that the trace does not hold)"
    if row["first_use_ns"]:
        said += f" ({time_text(row['first_use_ns'])} of it first use)"
    return said


def _host(row: "dict[Any, Any]") -> tuple[str | None, float | str | None]:
    """What the host was in for the largest part, and that part of the gap.

    Nobody can know where the cause is unknown; where the work was queued it ran ahead.
    """
    if _unknown(row):
        return None, None
    if not row["host"]:
        return AHEAD, ""
    name, ns = row["host"][0]
    return shorten(name, LONGEST), ns / row["length_ns"]


def _unknown(row: "dict[Any, Any]") -> bool:
    return bool(row["causes"][0][0] == "unknown")


def _ended_by(row: "dict[Any, Any]") -> str:
    return _text(row["ended_by"]) or LAST


def _text(value: object) -> str | None:
    return shorten(value, LONGEST) if isinstance(value, str) else None


def _listed(named: Sequence[tuple[str, int]], whole: int) -> str:
    """The largest parts in words, each with its time where there are several."""
    kept = [pair for pair in named[:MOST_NAMED] if pair[1] >= LEAST_SHARE * whole] or named[:1]
    if len(kept) == 1:
        name, ns = kept[0]
        return name if ns == whole else f"{name} {share_text(ns / whole)}"
    return ", ".join(f"{name} {time_text(ns)}" for name, ns in kept)
