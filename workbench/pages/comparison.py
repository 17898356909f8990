"""Two Runs compared, as HTML and as text."""

from collections.abc import Sequence
from typing import Any, Protocol

from workbench.pages.assets import page
from workbench.pages.escape import escape, visible
from workbench.pages.evidence import value_text
from workbench.pages.table import Column, Table, table_html, table_text

SAME = "Nothing else that was recorded differs between the two."
UNNAMED = ("first", "second")


class DifferenceLike(Protocol):
    """One thing besides the step time in which two Runs differ."""

    @property
    def where(self) -> str:
        """The part of the record: settings, effective, environment and so on."""

    @property
    def name(self) -> str:
        """What differs."""

    @property
    def first(self) -> Any:
        """Its value in the first Run."""

    @property
    def second(self) -> Any:
        """Its value in the second Run."""


def comparison_html(
    sentence: str,
    names: tuple[str, str],
    rows: Sequence[tuple[str, str, str]],
    differences: Sequence[DifferenceLike],
) -> str:
    """The verdict, what was compared, and in what else the two differ."""
    return page(
        f'<p class="wb-verdict" role="heading" aria-level="2">{escape(sentence)}</p>',
        table_html(_measured(rows, names), caption=False),
        "<h3>What else differs</h3>",
        table_html(_differing(differences, names), caption=False)
        if differences
        else f'<p class="wb-quiet">{SAME}</p>',
    )


def comparison_text(
    sentence: str,
    rows: Sequence[tuple[str, str, str]],
    differences: Sequence[DifferenceLike],
    names: tuple[str, str] = UNNAMED,
) -> str:
    """The same for a terminal."""
    parts = [visible(sentence), table_text(_measured(rows, names), caption=False)]
    parts.append(table_text(_differing(differences, names)) if differences else SAME)
    return "\n\n".join(parts)


def _measured(rows: Sequence[tuple[str, str, str]], names: tuple[str, str]) -> Table:
    columns = (Column(name=""), *(Column(name=name, kind="value") for name in names))
    return Table(caption="Step times of record", columns=columns, rows=tuple(rows))


def _differing(differences: Sequence[DifferenceLike], names: tuple[str, str]) -> Table:
    columns = (
        Column(name="where"),
        Column(name="what", kind="name"),
        *(Column(name=name) for name in names),
    )
    rows = tuple(
        (d.where, d.name, _said(d.name, d.first), _said(d.name, d.second)) for d in differences
    )
    return Table(caption="What else differs", columns=columns, rows=rows)


def _said(name: str, value: Any) -> str:
    return "not set" if value is None else value_text(name, value)
