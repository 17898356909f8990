"""Tables: one record, shown as HTML or as aligned text, numbers always through ``units``."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.pages.escape import escape, visible
from workbench.units import (
    NOT_MEASURED,
    bytes_text,
    count_text,
    share_text,
    significant,
    time_text,
)

Kind = Literal["text", "name", "value", "time", "share", "count", "bytes", "number", "flag"]
"""``time`` is nanoseconds, ``share`` a fraction, ``name`` foreign, ``flag`` yes or no, ``value``
a number that is text already. Text in a column of numbers is shown as it stands."""

NOT_KNOWN = "not known"
"""A flag that what was recorded does not tell."""

_NUMERIC = frozenset({"value", "time", "share", "count", "bytes", "number"})
_TEXT_NAME_WIDTH = 60
_LEAST_NAME_WIDTH = 16


@dataclass(frozen=True, kw_only=True)
class Column:
    """What stands over a column, and what its cells are."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of plain values; ``None`` and NaN mean *not measured*."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[object, ...], ...]
    left_out: int = 0
    """Rows that were dropped to keep the table short: said below it."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                columns = len(self.columns)
                raise ValueError(f"{self.caption!r} has {columns} columns, but a row of {len(row)}")


def cell_text(value: object, kind: Kind) -> str:
    """One value as people read it."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or _is_missing(value):
        return NOT_KNOWN if kind == "flag" else NOT_MEASURED
    if kind in ("text", "name", "value") or isinstance(value, str):
        return visible(str(value))
    if kind == "flag":
        return "yes" if value else "no"
    number = float(str(value))
    formats = {"time": time_text, "share": share_text, "count": count_text, "bytes": bytes_text}
    return formats[kind](number) if kind in formats else significant(number)


def table_html(table: Table, *, caption: bool = True) -> str:
    """The table as HTML; every cell is escaped."""
    head = "".join(
        f'<th scope="col"{_class(column.kind)}>{escape(column.name)}</th>'
        if column.name
        else "<td></td>"
        for column in table.columns
    )
    body = "".join(
        "<tr>" + "".join(map(_cell, row, (c.kind for c in table.columns))) + "</tr>"
        for row in table.rows
    )
    title = f"<caption>{escape(table.caption)}</caption>" if caption else ""
    note = ""
    if table.left_out:
        span = f'<td colspan="{len(table.columns)}" class="wb-quiet">'
        text = f"and {count_text(table.left_out)} more not listed"
        note = f"<tfoot><tr>{span}{text}</td></tr></tfoot>"
    return (
        f'<div class="wb-scroll" tabindex="0"><table>{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody>{note}</table></div>"
    )


def table_text(table: Table, *, caption: bool = True, width: int | None = None) -> str:
    """The table as aligned lines for a terminal.

    Args:
        table: The table.
        caption: Whether its caption stands above.
        width: Columns of the terminal, asked for when not given: names are shortened to fit.
    """
    kinds = [column.kind for column in table.columns]
    head = [visible(column.name) for column in table.columns]
    body = [[cell_text(v, k) for v, k in zip(row, kinds, strict=True)] for row in table.rows]
    room = _name_room(head, body, kinds, width or shutil.get_terminal_size((120, 24)).columns)
    cells = [head]
    for row in body:
        shortened = zip(row, kinds, strict=True)
        cells.append([_short(t, room if k == "name" else _TEXT_NAME_WIDTH) for t, k in shortened])
    widths = [max(len(row[i]) for row in cells) for i in range(len(kinds))]
    lines = [visible(table.caption)] if caption else []
    lines += [_line(row, widths, kinds) for row in cells]
    if table.left_out:
        lines.append(f"and {count_text(table.left_out)} more not listed")
    return "\n".join(lines)


def _name_room(
    head: Sequence[str], body: Sequence[Sequence[str]], kinds: Sequence[Kind], width: int
) -> int:
    """How long a name may be so that a line fits into the terminal."""
    named = kinds.count("name")
    if not named:
        return _TEXT_NAME_WIDTH
    taken = sum(
        max(len(head[i]), *(len(_short(row[i], _TEXT_NAME_WIDTH)) for row in body))
        for i, kind in enumerate(kinds)
        if kind != "name" and body
    )
    room = (width - taken - 2 * (len(kinds) - 1)) // named
    return min(_TEXT_NAME_WIDTH, max(_LEAST_NAME_WIDTH, room))


def _line(row: Sequence[str], widths: Sequence[int], kinds: Sequence[Kind]) -> str:
    padded = [
        text.rjust(width) if kind in _NUMERIC else text.ljust(width)
        for text, width, kind in zip(row, widths, kinds, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _short(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    tail = room // 2
    return f"{text[: room - tail - 1]}…{text[-tail:]}"


def _cell(value: object, kind: Kind) -> str:
    text = cell_text(value, kind)
    if text in (NOT_MEASURED, NOT_KNOWN):
        return f'<td class="{"wb-number " if kind in _NUMERIC else ""}wb-quiet">{text}</td>'
    return f"<td{_class(kind)}>{escape(text)}</td>"


def _class(kind: Kind) -> str:
    if kind in _NUMERIC:
        return ' class="wb-number"'
    return ' class="wb-name"' if kind == "name" else ""


def _is_missing(value: object) -> bool:
    """Whether a value is pandas' own mark for missing, without importing pandas."""
    return type(value).__name__ in ("NAType", "NaTType")
