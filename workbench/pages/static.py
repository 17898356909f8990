"""A figure as a piece of a page: chart, words, and the same numbers as a table."""

import html
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.figures.empty import is_unmeasured, reason_of
from workbench.pages.assets import drawing_script, page
from workbench.pages.escape import escape, guard_script, visible
from workbench.pages.table import Table, table_html, table_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_BYTES = 500_000
"""A larger figure freezes pages and blows up notebook files: aggregate before drawing."""

_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, kw_only=True, eq=False)
class StaticFigure:
    """A chart with its table and its alternative text.

    In JupyterLab and VS Code it shows as a live plotly chart; in an exported page as one drawn from
    the page's own plotly; in a terminal, and without JavaScript, as its table.
    """

    figure: "go.Figure"
    table: Table | None
    alt: str
    """What a person who cannot see the chart needs to know."""

    @property
    def title(self) -> str:
        """The figure's title as plain text."""
        return plain_text(self.figure.layout.title.text)

    @property
    def subtitle(self) -> str:
        """The line below the title as plain text."""
        return plain_text(self.figure.layout.title.subtitle.text)

    @property
    def measured(self) -> bool:
        """Whether there was anything to draw or to say, so that a page can leave out the rest."""
        return not is_unmeasured(self.figure)

    def html(self) -> str:
        """The fragment without style and script; ``page`` completes it."""
        caption = (
            f"<figcaption>{escape(self.title)}<span>{escape(self.subtitle)}</span></figcaption>"
        )
        if reason_of(self.figure) is not None:
            return f'<figure class="wb-figure">{caption}</figure>'
        twin = "" if self.table is None else table_html(self.table, caption=False)
        return (
            f'<figure class="wb-figure" data-wb-figure="waiting">{caption}'
            f'<div class="wb-plot" role="img" aria-label="{escape(self.alt)}"></div>'
            f'<script type="application/json">{payload(self.figure)}</script>'
            f"<details open><summary>The numbers as a table</summary>{twin}</details></figure>"
        )

    def text(self) -> str:
        """Title, subtitle and table for a terminal."""
        lines = [self.title, self.subtitle]
        if self.table is not None and reason_of(self.figure) is None:
            lines.append(table_text(self.table, caption=False))
        return "\n".join(line for line in lines if line)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {
            "text/html": page(self.html(), f"<script>{drawing_script()}</script>"),
            "text/plain": self.text(),
        }
        if reason_of(self.figure) is None:
            bundle["application/vnd.plotly.v1+json"] = json.loads(self.figure.to_json())
        return bundle


def payload(figure: "go.Figure") -> str:
    """The figure as JSON for the page's script; its title stands in the caption instead.

    Raises:
        ValueError: If the figure holds more than ``MOST_BYTES``.
    """
    drawn = json.loads(figure.to_json())
    layout = drawn["layout"]
    layout.pop("title", None)
    layout.setdefault("height", 320)
    margin = {**layout.get("template", {}).get("layout", {}).get("margin", {})}
    margin |= layout.get("margin", {})
    removed = max(0, margin.get("t", 100) - 16)
    layout["margin"] = {**margin, "t": margin.get("t", 100) - removed}
    layout["height"] -= removed
    text = guard_script(
        json.dumps({"data": drawn["data"], "layout": layout}, separators=(",", ":"))
    )
    if len(text) > MOST_BYTES:
        raise ValueError(
            f"the figure holds {len(text)} bytes, more than {MOST_BYTES}: aggregate before drawing"
        )
    return text


def plain_text(drawn: str | None) -> str:
    """Text written for plotly (entities, simple tags) as plain text."""
    return visible(html.unescape(_TAG.sub(" ", drawn or "")))
