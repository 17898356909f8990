"""The figure for something that was not measured: a designed state, never an axis of zeros."""

from typing import TYPE_CHECKING

from workbench.figures import names, template

if TYPE_CHECKING:
    import plotly.graph_objects as go


def not_measured(what: str, reason: str) -> "go.Figure":
    """A figure that says what was not measured, why, and what to do next.

    Args:
        what: The subject, such as "Kernel times".
        reason: A sentence with the cause and the next thing to do.
    """
    return template.figure(
        f"{names.plain(what)}: not measured",
        names.plain(reason),
        height=112,
        xaxis={"visible": False, "fixedrange": True},
        yaxis={"visible": False, "fixedrange": True},
        margin={"l": 6, "r": 16, "t": 72, "b": 8},
        meta={"not_measured": reason},
    )


def reason_of(figure: "go.Figure") -> str | None:
    """Why a figure is empty; ``None`` for one that shows something."""
    meta = figure.layout.meta
    return meta.get("not_measured") if isinstance(meta, dict) else None
