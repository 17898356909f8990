"""Scaling: the efficiency at each number of ranks, the ideal, and where the loss goes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.scale import exact
from workbench.units import count_text, share_text, significant

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.analysis.scaling.points import Share

PARTS = (
    ("efficiency", "as one rank does it", palette.CATEGORIES["compute"].colour, ""),
    (
        "exposed",
        "communication (transfer)",
        palette.CATEGORIES["exposed_communication_transfer"].colour,
        "",
    ),
    (
        "wait",
        "communication (wait for ranks)",
        palette.CATEGORIES["exposed_communication_wait"].colour,
        "/",
    ),
    ("slower", "slower compute and the rest", palette.CATEGORIES["host_other"].colour, ""),
)
"""Field of the share, its words, colour and pattern."""
FAINT = 0.45


def scaling_efficiency(
    shares: "Sequence[Any] | None", *, error: float | None = None
) -> "go.Figure":
    """Draw a bar a number of ranks, divided into what is done and what is lost.

    Args:
        shares: Measured ones first; predicted ones are drawn faint, with their range.
        error: Relative error of the model where it could be checked.
    """
    known = list(shares or ())
    if not known:
        return not_measured("Scaling", "runs with two numbers of ranks are needed.")
    drawn = template.figure(
        names.plain(headline(known)),
        names.plain(subtitle(known, error)),
        height=360,
        barmode="stack",
        bargap=0.25,
        xaxis={"title": {"text": "ranks"}, "type": "category", "showgrid": False},
        yaxis={"title": {"text": "share of the time (%)"}, "rangemode": "tozero"},
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "traceorder": "reversed"},
    )
    for field, label, colour, pattern in PARTS:
        drawn.add_bar(**_bars(known, field, label, colour, pattern))
    drawn.add_hline(y=100, line={"dash": "dot", "color": palette.INK, "width": 1.5})
    drawn.add_annotation(
        text="ideal", x=1, xref="paper", xanchor="right", y=100, yanchor="bottom", showarrow=False
    )
    return drawn


def headline(shares: "Sequence[Share]") -> str:
    """What the largest measured size is worth, and what it loses most to."""
    measured = [share for share in shares if not share.predicted] or list(shares)
    last = max(measured, key=lambda share: share.world_size)
    worth = significant(last.efficiency * last.world_size)
    text = (
        f"{count_text(last.world_size)} ranks do the work of {worth} ({_percent(last.efficiency)})"
    )
    lost = {label: float(getattr(last, field)) for field, label, _, _ in PARTS[1:]}
    most = max(lost, key=lambda label: lost[label])
    if lost[most] > 0.01:
        text += f"; most is lost to {most}"
    return text


def subtitle(shares: "Sequence[Share]", error: float | None) -> str:
    """What is a prediction, and how good it is."""
    predicted = [share for share in shares if share.predicted]
    if not predicted:
        return "samples a second and rank, over those of one rank"
    far = max(predicted, key=lambda share: share.world_size)
    text = f"faint: predicted; {count_text(far.world_size)} ranks: {_percent(far.efficiency)}"
    if far.low is not None and far.high is not None:
        text += f" ({_percent(far.low)} to {_percent(far.high)})"
    if error is None:
        return text + ", with an error that nobody knows: measure a third number of ranks"
    return text + f" · a measured size was predicted to within {share_text(error)}"


def _percent(share: float) -> str:
    return f"{significant(100 * share)} %"


def _bars(
    shares: "Sequence[Share]", field: str, label: str, colour: str, pattern: str
) -> dict[str, Any]:
    values = [float(getattr(share, field)) for share in shares]
    said = [
        f"<b>{count_text(share.world_size)} ranks{' (predicted)' if share.predicted else ''}</b>"
        f"<br>{label}: {_percent(value)} of {exact(share.step_ns)}"
        for share, value in zip(shares, values, strict=True)
    ]
    made: dict[str, Any] = {
        "name": label,
        "x": [str(share.world_size) for share in shares],
        "y": [round(100 * max(value, 0.0), 4) for value in values],
        "marker": {
            "color": colour,
            "opacity": [FAINT if share.predicted else 1.0 for share in shares],
            "pattern": {"shape": pattern},
        },
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    if field == "efficiency":
        made["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [_beyond(share.high, share.efficiency) for share in shares],
            "arrayminus": [_beyond(share.efficiency, share.low) for share in shares],
            "color": palette.INK,
        }
    return made


def _beyond(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else round(100 * max(high - low, 0.0), 4)
