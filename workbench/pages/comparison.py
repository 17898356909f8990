"""Two Runs compared, as HTML and as text: what differs first, the verdict, and where it arose."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.pages.assets import page
from workbench.pages.escape import escape, visible
from workbench.pages.evidence import value_text
from workbench.pages.table import Column, Table, table_html, table_text

SAME = "Besides times, nothing that was recorded differs between the two."
UNNAMED = ("first", "second")
WIDTH = 80
"""Columns of a terminal that the text keeps to."""
LONGEST_NAME = 12
"""Longer names of Runs stand above the tables of a terminal, not in their heads."""
LONGEST_HEAD = 32
"""The same for a page."""


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


@dataclass(frozen=True, kw_only=True)
class ComparisonView:
    """Everything that a comparison shows of itself, in the order of the page."""

    names: tuple[str, str] = UNNAMED
    differences: Sequence[DifferenceLike] = ()
    """In what the two differ besides their times."""
    sentence: str
    rows: Sequence[tuple[str, str, str]] = ()
    """Label and both values, as text, of what was measured."""
    notes: Sequence[str] = ()
    """What limits the tables, a sentence each."""
    tables: Sequence[Table] = ()
    """Where it arose; wide, for pages."""
    narrow: Sequence[Table] = ()
    """The same for 80 columns."""
    remarks: Sequence[str] = ()
    """Lines below the narrow tables, such as what was renamed."""


def comparison_html(view: ComparisonView) -> str:
    """What differs, the verdict, what was measured, and the tables folded away."""
    heads = view.names if max(map(len, view.names)) <= LONGEST_HEAD else UNNAMED
    named = "" if heads is view.names else _named(view.names)
    differing = _differing(view.differences, heads)
    notes = "".join(f'<p class="wb-quiet">{escape(note)}</p>' for note in view.notes)
    return page(
        named,
        '<h3 aria-level="2">What differs first</h3>',
        table_html(differing, caption=False)
        if view.differences
        else f'<p class="wb-quiet">{SAME}</p>',
        "<h3>Verdict</h3>",
        f'<p class="wb-verdict" role="heading" aria-level="2">{escape(view.sentence)}</p>',
        table_html(_measured(view.rows, heads), caption=False) if view.rows else "",
        notes,
        "<h3>Where it arose</h3>" if view.tables else "",
        *(
            f"<details><summary>{escape(table.caption)}</summary>"
            f"{table_html(table, caption=False)}</details>"
            if table.rows
            else f'<p class="wb-quiet">{escape(table.caption)}</p>'
            for table in view.tables
        ),
    )


def comparison_text(view: ComparisonView) -> str:
    """The same for a terminal, in at most 80 columns."""
    parts = []
    heads = view.names
    if max(map(len, heads)) > LONGEST_NAME:
        parts.append(_wrapped([f"first:  {heads[0]}", f"second: {heads[1]}"]))
        heads = UNNAMED
    if view.differences:
        told = [_told(difference) for difference in view.differences]
        parts.append("What differs first\n" + _wrapped(told, indent="  "))
    else:
        parts.append(SAME)
    parts.append(_wrapped([view.sentence]))
    if view.rows:
        parts.append(table_text(_measured(view.rows, heads), caption=False))
    if view.notes:
        parts.append(_wrapped(view.notes))
    parts += [table_text(table) if table.rows else table.caption for table in view.narrow]
    if view.remarks:
        parts.append(_wrapped(view.remarks, indent="  "))
    return "\n\n".join(parts)


def _named(names: tuple[str, str]) -> str:
    """Which is the first and which the second, where their names are too long for a head."""
    pairs = zip(UNNAMED, names, strict=True)
    listed = "".join(f"<dt>{head}</dt><dd>{escape(name)}</dd>" for head, name in pairs)
    return f"<dl>{listed}</dl>"


def _wrapped(lines: Sequence[str], indent: str = "") -> str:
    """Lines broken at 80 columns, what follows a break set in."""
    return "\n".join(
        textwrap.fill(
            visible(line),
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_on_hyphens=False,
        )
        for line in lines
    )


def _told(difference: DifferenceLike) -> str:
    name = difference.name
    values = (_said(name, value) for value in (difference.first, difference.second))
    return f"{difference.where}: {name}: {' → '.join(values)}"


def _measured(rows: Sequence[tuple[str, str, str]], names: tuple[str, str]) -> Table:
    columns = (Column(name=""), *(Column(name=name, kind="value") for name in names))
    return Table(caption="Step times", columns=columns, rows=tuple(rows))


def _differing(differences: Sequence[DifferenceLike], names: tuple[str, str]) -> Table:
    columns = (
        Column(name="where"),
        Column(name="what", kind="name"),
        *(Column(name=name) for name in names),
    )
    rows = tuple(
        (d.where, d.name, _said(d.name, d.first), _said(d.name, d.second)) for d in differences
    )
    return Table(caption="What differs first", columns=columns, rows=rows)


def _said(name: str, value: Any) -> str:
    return "not set" if value is None else value_text(name, value)
