"""The look of every figure: transparent, system font, no chart junk, legible in light and dark."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures import palette

if TYPE_CHECKING:
    import plotly.graph_objects as go

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
SIZE = 13
TITLE_SIZE = 15
BOTTOM = 48
"""Pixels below the plot."""
CLEAR = "rgba(0,0,0,0)"
NAMELESS = {"fixedrange": True, "showgrid": False, "showticklabels": False}
"""For an axis of rows whose names stand beside their bars."""
APART = {"ticks": "outside", "ticklen": 6, "tickcolor": CLEAR}
"""For an axis of names: some room between a name and its bar."""


def template() -> dict[str, Any]:
    """The plotly template, as plain JSON; it is never registered as anybody's default."""
    axis = {
        "gridcolor": palette.GRID,
        "linecolor": palette.GRID,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": SIZE}},
        "separatethousands": True,
    }
    return {
        "layout": {
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": CLEAR,
            "font": {"family": FONT, "size": SIZE, "color": palette.INK},
            "title": {
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 8, "l": 6},
                "font": {"size": TITLE_SIZE, "weight": 600},
                "subtitle": {"font": {"size": SIZE, "color": palette.INK, "weight": 400}},
            },
            "margin": {"l": 6, "r": 16, "t": 72, "b": BOTTOM},
            "xaxis": axis,
            "yaxis": axis,
            "separators": ".\u2009",
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": False,
            "bargap": 0.3,
            "hoverlabel": {
                "bgcolor": palette.TOOLTIP,
                "bordercolor": palette.INK,
                "font": {"family": FONT, "size": SIZE, "color": palette.TOOLTIP_TEXT},
                "align": "left",
                "namelength": -1,
            },
        }
    }


def figure(title: str, subtitle: str, *, height: int, **layout: Any) -> "go.Figure":
    """An empty figure in our look; ``title`` and ``subtitle`` are already safe to draw."""
    import plotly.graph_objects as go

    heading = {"text": title, "subtitle": {"text": subtitle}}
    return go.Figure(layout={"template": template(), "title": heading, "height": height, **layout})


def direct_label(text: str, *, x: float, y: float, **rest: Any) -> dict[str, Any]:
    """A piece of text beside what it names, in place of a legend."""
    return {"text": text, "x": x, "y": y, "showarrow": False, "align": "left", **rest}


def filled(look: palette.Category) -> dict[str, Any]:
    """How all bars of one look are filled."""
    return _fill(look.colour, "/" if look.hatched else "")


def each_filled(looks: Sequence[palette.Category]) -> dict[str, Any]:
    """How bars are filled that have a look each."""
    return _fill([look.colour for look in looks], ["/" if look.hatched else "" for look in looks])


def _fill(colour: str | list[str], shape: str | list[str]) -> dict[str, Any]:
    pattern = {"shape": shape, "fillmode": "replace", "size": 6, "solidity": 0.5}
    return {"color": colour, "line": {"width": 0}, "pattern": pattern}
