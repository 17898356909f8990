"""Charts and tables on one subject, folded away below a line that says what they show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.figures.empty import reason_of
from workbench.pages.assets import drawing_script, page
from workbench.pages.escape import escape, visible
from workbench.pages.static import StaticFigure
from workbench.pages.table import Table, table_html, table_text


@dataclass(frozen=True, kw_only=True)
class Folded:
    """Charts and tables; false when none of them was measured."""

    title: str
    charts: Sequence[StaticFigure] = ()
    tables: Sequence[Table] = ()

    def __bool__(self) -> bool:
        return bool(self.tables) or any(reason_of(chart.figure) is None for chart in self.charts)

    def html(self) -> str:
        """The fragment without style and script; empty when nothing was measured."""
        if not self:
            return ""
        inner = "".join(chart.html() for chart in self.charts)
        inner += "".join(table_html(table) for table in self.tables)
        summary = f"<summary>{escape(self.title)}</summary>"
        return f'<details class="wb-folded">{summary}{inner}</details>'

    def text(self) -> str:
        """The same for a terminal."""
        if not self:
            return ""
        parts = [visible(self.title)]
        parts += [chart.text() for chart in self.charts]
        parts += [table_text(table) for table in self.tables]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        script = f"<script>{drawing_script()}</script>" if self.charts else ""
        return {"text/html": page(self.html(), script), "text/plain": self.text()}
