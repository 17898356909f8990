"""The model as an icicle: every module below the one that holds it, as wide as what it costs."""

from typing import TYPE_CHECKING, Any, Literal

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.units import bytes_text, share_text, significant, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Measure = Literal["time", "flops", "bytes"]
_COLUMNS = {"time": "time_ns", "flops": "flops", "bytes": "bytes"}
_WHAT = {"time": "time of a step", "flops": "FLOPs of a step", "bytes": "bytes of a step"}
DEEPEST = 6
LEAST = 0.004
"""Narrower modules are not drawn: nobody could see or touch them."""
READABLE = 0.012
"""Share of the width that a letter needs, about."""


def module_tree(
    table: "pd.DataFrame | None",
    *,
    by: Measure = "time",
    source: str = "",
    reason: str = "no module is known.",
) -> "go.Figure":
    """Draw the tree of modules from the top, each as wide as its time, FLOPs or bytes.

    Args:
        table: module, path, depth, time_ns, flops, bytes and their forward and backward parts, in
            the order of the tree.
        by: What the width is.
        source: Who told the modules.
        reason: Said when there is nothing to draw.
    """
    column = _COLUMNS[by]
    total = 0.0 if table is None else float(table[column][table["depth"] == 0].sum())
    if table is None or not total:
        return not_measured("Cost by module", reason)
    boxes = _boxes(
        [{str(k): v for k, v in row.items()} for row in table.to_dict("records")], column
    )
    shown = [box for box in boxes if box[2] >= LEAST * total and box[1] <= DEEPEST]
    deepest = max(depth for _, depth, _, _ in shown)
    told = f" · modules by {source}" if source else ""
    drawn = template.figure(
        names.plain(headline(boxes, total, by)),
        names.plain(f"{_amount(total, by)} · forward and backward · children below{told}"),
        height=150 + 42 * (deepest + 1),
        xaxis={
            "title": {"text": f"share of the {_WHAT[by]} (%)"},
            "range": [0, 100.1],
            "fixedrange": True,
        },
        yaxis={"range": [deepest + 0.6, -0.6], **template.NAMELESS},
        showlegend=False,
        bargap=0,
        uniformtext={"minsize": 11, "mode": "hide"},
    )
    looks = [_COLOURS[depth % len(_COLOURS)] for _, depth, _, _ in shown]
    drawn.add_bar(
        orientation="h",
        base=[100 * start / total for start, _, _, _ in shown],
        x=[100 * width / total for _, _, width, _ in shown],
        y=[depth for _, depth, _, _ in shown],
        width=0.94,
        marker={"color": looks, "line": {"width": 1, "color": "#FFFFFF"}},
        text=[_label(str(row["module"]), width / total) for _, _, width, row in shown],
        textposition="inside",
        insidetextanchor="middle",
        constraintext="both",
        textangle=0,
        textfont={"color": [palette.ink_on(look) for look in looks]},
        customdata=[_said(row, width, total, by) for _, _, width, row in shown],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return drawn


def headline(
    boxes: list[tuple[float, int, float, dict[str, Any]]], total: float, by: Measure
) -> str:
    """The largest module without one inside that is almost all of it."""
    inner = [box for box in boxes if box[1] > 0] or boxes
    _, _, width, row = max(inner, key=lambda box: (box[2], -box[1]))
    what = {"time": "time", "flops": "FLOPs", "bytes": "bytes"}[by]
    return f"{row['path']} takes {share_text(width / total)} of the {what}"


def _boxes(
    rows: list[dict[str, Any]], column: str
) -> list[tuple[float, int, float, dict[str, Any]]]:
    """Start, depth and width of each module; children from where their parent begins."""
    made: list[tuple[float, int, float, dict[str, Any]]] = []
    ends = {0: 0.0}
    for row in rows:
        depth, width = int(row["depth"]), float(row[column])
        start = ends.get(depth, 0.0)
        made.append((start, depth, width, row))
        ends[depth], ends[depth + 1] = start + width, start
    return made


def _label(name: str, share: float) -> str:
    fits = int(share / READABLE)
    if fits >= len(name):
        return names.plain(name)
    return names.plain(f"{name[: fits - 1]}…") if fits > 3 else ""


def _amount(value: float, by: Measure) -> str:
    if by == "time":
        return time_text(value)
    return bytes_text(int(value)) if by == "bytes" else f"{significant(value / 1e9)} GFLOP"


def _said(row: dict[str, Any], width: float, total: float, by: Measure) -> str:
    return (
        f"<b>{names.plain(str(row['path']))}</b><br>{share_text(width / total)} of the {_WHAT[by]}"
        f"<br>{time_text(float(row['time_ns']))}: forward {time_text(float(row['forward_ns']))}, "
        f"backward {time_text(float(row['backward_ns']))}"
        f"<br>{_amount(float(row['flops']), 'flops')}, {_amount(float(row['bytes']), 'bytes')}"
    )


_COLOURS = tuple(
    palette.category(name).colour for name in ("compute", "forward", "backward", "optimizer")
)
