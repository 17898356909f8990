"""Tables of a comparison: wide ones for pages, narrow ones for a terminal."""

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette
from workbench.figures.difference import CERTAIN, PER, Of, brief, word
from workbench.pages.table import Column, Kind, Table
from workbench.units import NOT_MEASURED, count_text, time_text

if TYPE_CHECKING:
    import pandas as pd

TOP = 10
LIMIT = 30
WIDTH = 80
SHORTEST_NAME = 16
_TITLES: Mapping[Of, tuple[str, str]] = {
    "breakdown": ("Parts of a step", "part"),
    "families": ("Kernel families", "family"),
    "kernels": ("Kernels", "kernel"),
    "operators": ("Operators", "operator"),
}
What = Mapping[Hashable, Any]


def difference_table(
    frame: "pd.DataFrame", of: Of, names_of: tuple[str, str], per: str, *, limit: int = LIMIT
) -> Table:
    """Every row that differs, the largest first, with its interval and why it is one row."""
    shown = differing(frame, of)
    columns: list[tuple[str, Kind]] = [("change", "text"), (_TITLES[of][1], "name")]
    if of in ("kernels", "operators"):
        columns += [("match", "text"), ("calls a step", "value"), ("then", "value")]
    columns += [(names_of[0], "time"), (names_of[1], "time"), ("difference", "value")]
    columns.append(("95 %", "value"))
    if of == "operators":
        columns.append(("host itself", "value"))
    rows = tuple(_row(record, of) for record in shown.head(limit).to_dict("records"))
    return Table(
        caption=_caption(frame, of, per),
        columns=tuple(Column(name=name, kind=kind) for name, kind in columns),
        rows=rows,
        left_out=max(0, len(shown) - limit),
    )


def narrow_table(
    frame: "pd.DataFrame", of: Of, names_of: tuple[str, str], per: str, *, limit: int = TOP
) -> Table:
    """The same in 80 columns, the ten largest; calls only where some of them differ.

    Operators that launch no work are left to the wide table: their host time is under the profiler.
    """
    shown = differing(frame, of)
    shown = shown[shown["difference_ns"] != 0] if of == "operators" else shown
    records = shown.head(limit).to_dict("records")
    columns: list[tuple[str, Kind]] = [("change", "text"), (_TITLES[of][1], "text")]
    cells = [[word(record, of), _short(record, of)] for record in records]
    calls = [_calls(record) for record in records]
    if of in ("kernels", "operators") and any(" → " in each for each in calls):
        columns.append(("calls", "text"))
        cells = [[*row, each] for row, each in zip(cells, calls, strict=True)]
    columns += [(names_of[0], "value"), (names_of[1], "value"), ("difference", "value")]
    for row, record in zip(cells, records, strict=True):
        row += [time_or_none(record[c]) for c in ("first_ns", "second_ns")]
        row.append(signed(record["difference_ns"]) or NOT_MEASURED)
    _fit([[name for name, _ in columns], *cells])
    return Table(
        caption=_caption(frame, of, per),
        columns=tuple(Column(name=name, kind=kind) for name, kind in columns),
        rows=tuple(tuple(row) for row in cells),
        left_out=max(0, len(shown) - limit),
    )


def _fit(cells: list[list[str]]) -> None:
    """Shorten the names, which are the second column, until a line has 80 columns."""
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    room = WIDTH - sum(widths) + widths[1] - 2 * (len(widths) - 1)
    for row in cells:
        row[1] = names.shorten(row[1], max(room, SHORTEST_NAME))


def _caption(frame: "pd.DataFrame", of: Of, per: str) -> str:
    title, told = _TITLES[of][0], PER[per]
    if of == "breakdown":
        return "Parts of the window" if per == "window" else f"{title}, mean time {told}"
    held = int(frame["change"].isin(CERTAIN).sum())
    unsure = int((frame["change"] == "cannot_tell").sum())
    said = f"{count_text(held)} of {count_text(len(frame))} differ"
    said += f", {count_text(unsure)} cannot be told" if unsure else ""
    mean = "" if per == "window" else "mean "
    return f"{title}, {mean}time {told}: {said}"


def differing(frame: "pd.DataFrame", of: Of) -> "pd.DataFrame":
    """The rows that differ, the largest first; of a step every part that is not zero."""
    size = frame["difference_ns"].abs()
    if of == "breakdown":
        kept = frame[["first_ns", "second_ns"]].fillna(0).sum(axis=1) > 0
    else:
        kept = frame["change"].isin(CERTAIN) | ((size > 0) & (frame["change"] == "cannot_tell"))
    found = frame[kept].assign(size=size[kept])
    return found.sort_values("size", ascending=False, kind="stable")


def renames(frame: "pd.DataFrame", limit: int = TOP) -> list[str]:
    """One line a renamed row: both names and why they are the same."""
    both = frame["name_first"].notna() & (frame["name"] != frame["name_first"])
    rows = frame[both].head(limit).to_dict("records")
    lines = [
        f"{names.shorten(brief(str(r['name_first'])))} → {names.shorten(brief(str(r['name'])))}"
        f" ({str(r['match']).removeprefix('renamed: ')})"
        for r in rows
    ]
    left = int(both.sum()) - len(rows)
    return [*lines, f"and {count_text(left)} more renamed"] if left > 0 else lines


def label(record: What, of: Of) -> str:
    """A row's name as people read it."""
    name = str(record["name"])
    return palette.category(name).label if of == "breakdown" else name


def signed(ns: Any) -> str | None:
    """A difference with its sign; ``None`` where there is none to tell."""
    value = float(ns)
    if math.isnan(value):
        return None
    return f"{'−' if value < 0 else '+' if value > 0 else ''}{time_text(abs(value))}"


def _short(record: What, of: Of) -> str:
    text = label(record, of)
    return brief(text) if of == "kernels" else text


def time_or_none(ns: Any) -> str:
    """A time, or that it was not measured."""
    value = float(ns)
    return NOT_MEASURED if math.isnan(value) else time_text(value)


def _calls(record: What) -> str:
    counts = [f"{float(record[c]):.4g}" for c in ("calls_first", "calls_second") if c in record]
    return " → ".join(dict.fromkeys(counts))


def _row(record: What, of: Of) -> tuple[object, ...]:
    cells: list[object] = [word(record, of), label(record, of)]
    if of in ("kernels", "operators"):
        before = record["name_first"]
        was = isinstance(before, str) and before != record["name"]
        cells.append(f"{record['match']}; was {before}" if was else str(record["match"]))
        cells += [f"{float(record[c]):.4g}" for c in ("calls_first", "calls_second")]
    cells += [float(record[c]) for c in ("first_ns", "second_ns")]
    low, high = signed(record["low_ns"]), signed(record["high_ns"])
    cells.append(signed(record["difference_ns"]))
    cells.append("one step" if low is None or high is None else f"{low} to {high}")
    if of == "operators":
        cells.append(signed(record["host_difference_ns"]))
    return tuple(cells)
