"""Difference bars: what takes less time to the left of a line, what takes more to the right."""

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured, nothing
from workbench.figures.kernels import colour_of
from workbench.figures.ranking import height, row_axis, row_labels
from workbench.figures.scale import exact, time_scale
from workbench.units import count_text, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Of = Literal["breakdown", "families", "kernels", "operators"]
What = Mapping[Hashable, Any]

WORDS = {
    "faster": "▲ faster",
    "slower": "▼ slower",
    "added": "+ added",
    "removed": "− removed",
    "same": "≈ within spread",
    "cannot_tell": "≈ cannot tell",
    "not_measured": "not measured on one side",
}
"""What a row says beside its bar: by shape and word, the colour is the category's."""

_OF_PARTS = {"faster": "▲ less", "slower": "▼ more"}
_NAMESPACE = re.compile(r"\(anonymous namespace\)::|[A-Za-z_]\w*::")

_SUBJECTS: dict[str, tuple[str, str]] = {
    "breakdown": ("part of a step", "parts of a step"),
    "families": ("kernel family", "kernel families"),
    "kernels": ("kernel", "kernels"),
    "operators": ("operator", "operators"),
}
MOST_REACH = 1.3
"""The axis grows by at most this for intervals: of two steps they can be wide beyond reading."""
FAINT = 0.35
"""Bars of differences that prove nothing."""
PER = {"step": "a step", "sample": "a sample", "window": "in all"}
CERTAIN = frozenset({"faster", "slower", "added", "removed"})
_ONE_SIDED = ("removed", "added")
"""Seen on one side only: certain, however little time it takes."""


def difference_bars(
    table: "pd.DataFrame | None",
    *,
    of: Of,
    names_of: tuple[str, str] = ("before", "after"),
    per: str = "step",
    limit: int = 15,
    reason: str = "both sides must have recorded it.",
) -> "go.Figure":
    """Draw the largest differences of a comparison, and all others as one bar.

    Args:
        table: name, change, first_ns, second_ns, difference_ns, low_ns, high_ns, and group for
            kernels, in any order.
        of: What the rows are.
        names_of: What the sides are called.
        per: What the times are of: step, sample or window.
        limit: How many rows are drawn one by one.
        reason: Said when there is nothing to draw.
    """
    one, many = _SUBJECTS[of]
    if table is None or not len(table):
        return not_measured(f"Difference by {one}", reason)
    measured = table[table["difference_ns"].notna()]
    differing = measured[(measured["difference_ns"] != 0) | measured["change"].isin(CERTAIN)]
    if not len(differing):
        return nothing(
            f"No {one} differs between {names_of[0]} and {names_of[1]}",
            f"{count_text(len(measured))} {one if len(measured) == 1 else many} compared.",
        )
    size = differing["difference_ns"].abs()
    ranked = differing.loc[size.sort_values(ascending=False, kind="stable").index]
    rows = [_row(record, of, names_of, per) for record in ranked.head(limit).to_dict("records")]
    rest = ranked.iloc[limit:]
    if len(rest):
        rows.append(_others(rest, many, per))
    total = float(measured["difference_ns"].sum())
    return _drawn(
        names.plain(headline(ranked.to_dict("records"), of, names_of, per)),
        names.plain(_subtitle(measured, total, names_of, per)),
        rows,
        axis=f"time {PER[per]}: {names_of[1]} minus {names_of[0]}",
    )


def headline(ranked: Sequence[What], of: Of, names_of: tuple[str, str], per: str) -> str:
    """The largest difference that holds, or that none does."""
    one, _ = _SUBJECTS[of]
    held = [row for row in ranked if row["change"] in CERTAIN]
    timed = [row for row in held if row["change"] not in _ONE_SIDED]
    if not held or (not timed and held[0] is not ranked[0]):
        # One that only one side has is no headline where larger differences are chance.
        unsure = any(row["change"] == "cannot_tell" for row in ranked)
        what = "can be told from chance" if unsure else "is beyond what steps differ by"
        article, (first, second) = "an" if of == "operators" else "a", names_of
        said = f"No difference of {article} {one} between {first} and {second} {what}"
        return said + _one_sided(held)
    top = held[0] if held[0] is ranked[0] else timed[0]
    ns = float(top["difference_ns"])
    label = names.shorten(_brief(top, of), 44)
    if top["change"] in _ONE_SIDED:
        return f"{label} is {top['change']}: {time_text(abs(ns))} {PER[per]}"
    label = f"{label[0].upper()}{label[1:]}" if of == "breakdown" else label
    return f"{label} takes {time_text(abs(ns))} {'less' if ns < 0 else 'more'} {PER[per]}"


def _one_sided(rows: Sequence[What]) -> str:
    """How many only one side has."""
    counts = [(sum(row["change"] == name for row in rows), name) for name in _ONE_SIDED]
    told = [f"{count_text(count)} {name}" for count, name in counts if count]
    return f"; {' and '.join(told)}" if told else ""


def _subtitle(table: "pd.DataFrame", total: float, names_of: tuple[str, str], per: str) -> str:
    sums = [float(table[column].sum()) for column in ("first_ns", "second_ns")]
    sign = "less" if total < 0 else "more"
    text = f"together {time_text(abs(total))} {sign} {PER[per]} in {names_of[1]}"
    text += f" ({time_text(sums[0])} to {time_text(sums[1])}), under the profiler"
    changes = set(table[table["difference_ns"] != 0]["change"])
    if "same" in changes:
        text += " · faint: not beyond what steps differ by"
    return text


def word(record: What, of: Of) -> str:
    """The change of a row by shape and word; a part of a step is not fast, it is less or more."""
    change = str(record["change"])
    if change == "same" and record["difference_ns"] == 0:
        return "= same"
    return (_OF_PARTS if of == "breakdown" else {}).get(change, WORDS.get(change, change))


def brief(name: str) -> str:
    """A kernel's name without return type, namespaces and parameters, which fill a line."""
    if name.startswith("Mem"):
        return name
    text = _NAMESPACE.sub("", name.removeprefix("void "))
    if text.endswith(")") and "(" in text:
        depth = 0
        for at in range(len(text) - 1, -1, -1):
            depth += (text[at] == ")") - (text[at] == "(")
            if not depth:
                return text[:at].rstrip() or name
    return text or name


def _label(record: What, of: Of) -> str:
    name = str(record["name"])
    if of == "breakdown":
        return palette.category(name).label
    return name


def _brief(record: What, of: Of) -> str:
    label = _label(record, of)
    return brief(label) if of == "kernels" else label


def _colour(record: What, of: Of) -> str:
    name = str(record["name"])
    if of == "breakdown":
        return palette.category(name).colour
    if of == "operators":
        return palette.category("host_operators").colour
    return colour_of(record.get("group"), name)


def _row(record: What, of: Of, names_of: tuple[str, str], per: str) -> dict[str, Any]:
    ns, change = float(record["difference_ns"]), str(record["change"])
    said = [f"<b>{names.full(_label(record, of))}</b>"]
    before = record.get("name_first")
    if isinstance(before, str) and before != record["name"]:
        said += [f"was {names.full(before)}", names.plain(str(record["match"]))]
    for side, column in zip(names_of, ("first_ns", "second_ns"), strict=True):
        said.append(f"{names.plain(side)}: {exact(float(record[column]))} {PER[per]}")
    low, high = float(record["low_ns"]), float(record["high_ns"])
    if not math.isnan(low):
        said.append(f"difference {exact(ns)}, 95 %: {exact(low)} to {exact(high)}")
    calls = record.get("calls_first"), record.get("calls_second")
    if of in ("kernels", "operators") and None not in calls:
        said.append(f"calls a step: {float(calls[0] or 0):.4g} to {float(calls[1] or 0):.4g}")
    mark = " (renamed)" if isinstance(before, str) and before != record["name"] else ""
    return {
        "label": names.label(_brief(record, of), 52) + mark,
        "value": f"<b>{_signed(ns)}</b>  {word(record, of)}",
        "ns": ns,
        "colour": _colour(record, of),
        "opacity": 1.0 if change in CERTAIN else FAINT,
        "hollow": change in _ONE_SIDED,
        "interval": None if math.isnan(low) or change in _ONE_SIDED else (low, high),
        "hover": "<br>".join(said),
    }


def _others(rest: "pd.DataFrame", many: str, per: str) -> dict[str, Any]:
    ns = float(rest["difference_ns"].sum())
    label = f"{count_text(len(rest))} other {many}"
    return {
        "label": label,
        "value": f"<b>{_signed(ns)}</b>",
        "ns": ns,
        "colour": palette.category("unknown").colour,
        "opacity": FAINT,
        "hollow": False,
        "interval": None,
        "hover": f"<b>{label}</b><br>together {exact(ns)} {PER[per]}",
    }


def _signed(ns: float) -> str:
    return f"{'−' if ns < 0 else '+'}{time_text(abs(ns))}"


def _drawn(
    title: str, subtitle: str, rows: Sequence[Mapping[str, Any]], *, axis: str
) -> "go.Figure":
    longest = max(abs(float(row["ns"])) for row in rows)
    ends = [abs(end) for row in rows if row["interval"] is not None for end in row["interval"]]
    reach = min(max([longest, *ends]), MOST_REACH * longest) or 1.0
    scale = time_scale(reach)
    drawn = template.figure(
        title,
        subtitle,
        height=height(len(rows)),
        xaxis={
            "title": {"text": f"{names.plain(axis)} ({scale.unit})"},
            "range": [-1.02 * reach / scale.size, 1.02 * reach / scale.size],
            "fixedrange": True,
            "showgrid": False,
        },
        yaxis=row_axis(len(rows)),
        annotations=row_labels([(row["label"], row["value"]) for row in rows]),
    )
    line = {"color": palette.INK, "width": 1}
    drawn.add_shape(type="line", x0=0, x1=0, y0=-0.3, y1=len(rows) - 0.4, line=line)
    drawn.add_bar(**_bars(rows, scale.size))
    _whiskers(drawn, rows, scale.size, reach)
    return drawn


def _bars(rows: Sequence[Mapping[str, Any]], size: float) -> dict[str, Any]:
    return {
        "orientation": "h",
        "x": [row["ns"] / size for row in rows],
        "y": list(range(len(rows))),
        "width": 0.32,
        "marker": {
            "color": [row["colour"] for row in rows],
            "opacity": [row["opacity"] for row in rows],
            "line": {"width": [1 if row["hollow"] else 0 for row in rows], "color": palette.INK},
        },
        "customdata": [row["hover"] for row in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _whiskers(
    drawn: "go.Figure", rows: Sequence[Mapping[str, Any]], size: float, reach: float
) -> None:
    """The 95 % interval of each difference as a thin line over its bar, cut at the axis."""
    line = {"color": palette.INK, "width": 1}
    for number, row in enumerate(rows):
        if row["interval"] is not None:
            low, high = (max(-reach, min(reach, end)) / size for end in row["interval"])
            drawn.add_shape(type="line", x0=low, x1=high, y0=number, y1=number, line=line)
