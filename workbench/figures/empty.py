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
    made = nothing(f"{what}: not measured", reason)
    made.layout.meta = {"empty": reason, "measured": False}
    return made


def nothing(title: str, reason: str) -> "go.Figure":
    """A figure without an axis, for what has nothing to draw.

    Args:
        title: What is so, such as "GPU 0 is never idle in the window".
        reason: A sentence that says why there is nothing to see.
    """
    return template.figure(
        names.plain(title),
        names.plain(reason),
        height=112,
        xaxis={"visible": False, "fixedrange": True},
        yaxis={"visible": False, "fixedrange": True},
        margin={"l": 6, "r": 16, "t": 72, "b": 8},
        meta={"empty": reason},
    )


def reason_of(figure: "go.Figure") -> str | None:
    """Why a figure is empty; ``None`` for one that shows something."""
    meta = figure.layout.meta
    return meta.get("empty") if isinstance(meta, dict) else None


def is_unmeasured(figure: "go.Figure") -> bool:
    """Whether a figure only says that something was not measured."""
    meta = figure.layout.meta
    return isinstance(meta, dict) and meta.get("measured") is False
