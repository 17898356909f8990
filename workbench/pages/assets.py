"""The stylesheet and the drawing script that pages carry."""

from functools import cache
from importlib.resources import files


@cache
def stylesheet() -> str:
    """The one stylesheet, as text."""
    return _text("page.css")


@cache
def drawing_script() -> str:
    """The script that draws waiting figures, as text."""
    return _text("draw.js")


def page(*parts: str) -> str:
    """Parts under our own class and with our own style, for one cell's output."""
    inner = "".join(parts)
    return f'<style>{stylesheet()}</style><div class="wb">{inner}</div>'


def plotly_script() -> bytes:
    """plotly.js as the installed plotly package carries it."""
    return (files("plotly") / "package_data" / "plotly.min.js").read_bytes()


def _text(name: str) -> str:
    return (files("workbench.pages") / name).read_text(encoding="utf-8")
