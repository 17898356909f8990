"""A Run's tables as people read them: units in what is shown, nanoseconds in the data."""

import shutil
from collections.abc import Callable
from typing import Any, Self

import pandas as pd

from workbench.pages.escape import visible
from workbench.units import (
    NOT_MEASURED,
    bytes_text,
    count_text,
    share_text,
    significant,
    time_text,
)

MOST_ROWS = 30
LONGEST = 60
UNIT = "unit"
"""In ``attrs``: ``ns`` where every number of a table is nanoseconds, however it is called."""
SHARES = "shares"
"""In ``attrs``: the columns that hold shares without saying so in their names."""
_COUNTED = ("rank", "device", "step")
"""Columns that say which, in such a table as well."""
_MOMENTS = ("start_ns", "end_ns", "at_ns", "in_window_ns")
"""Columns that say when, not how long: they keep the digits that tell neighbours apart."""
NOTE_ALL = "Shown in units; the data hold nanoseconds."
NOTE = "Shown in units; the data hold nanoseconds in the columns that end in _ns."


class Shown(pd.DataFrame):
    """A DataFrame that shows durations, sizes and shares with their units.

    It calculates, selects and saves like any other; only its text and its page differ.
    """

    @property
    def _constructor(self) -> type[Self]:
        return type(self)

    def __repr__(self) -> str:
        shown, absent = _readable(self)
        text = shown.to_string(line_width=shutil.get_terminal_size((120, 24)).columns)
        return "\n".join((text, *_remarks(self, absent)))

    def _repr_html_(self) -> str:
        shown, absent = _readable(self)
        said = "".join(f"<p>{line}</p>" for line in _remarks(self, absent))
        return f"{shown.to_html(notebook=True)}{said}"


def in_nanoseconds(table: pd.DataFrame) -> Shown:
    """A table all of whose numbers are nanoseconds, but for the rank, the device and the step."""
    made = Shown(table)
    made.attrs[UNIT] = "ns"
    return made


def with_shares(table: pd.DataFrame, *columns: str) -> Shown:
    """A table of which these columns are shares of 1, told in percent."""
    made = Shown(table)
    made.attrs[SHARES] = columns
    return made


def _readable(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The first rows as text, and the columns left out because nothing of them was measured."""
    plain = pd.DataFrame(table).head(MOST_ROWS)
    absent = [str(name) for name in table.columns if len(table) and table[name].isna().all()]
    kept = [name for name in plain.columns if str(name) not in absent]
    all_ns = table.attrs.get(UNIT) == "ns"
    shares = table.attrs.get(SHARES, ())
    formats = {
        name: share_text if name in shares else _format(str(name), all_ns=all_ns) for name in kept
    }
    texts = {name: [_text(value, formats[name]) for value in plain[name]] for name in kept}
    return pd.DataFrame(texts, index=plain.index, columns=kept, dtype=object), absent


def _remarks(table: pd.DataFrame, absent: list[str]) -> list[str]:
    said = []
    if len(table) > MOST_ROWS:
        said.append(f"and {count_text(len(table) - MOST_ROWS)} more rows")
    if absent:
        said.append(f"{NOT_MEASURED}: {', '.join(absent)}")
    if table.attrs.get(UNIT) == "ns":
        said.append(NOTE_ALL)
    elif any(str(name).endswith("_ns") for name in table.columns):
        said.append(NOTE)
    return said


def _format(name: str, *, all_ns: bool) -> Callable[[float], str]:
    """How numbers of a column are told, by its name."""
    words = name.split("_")
    if name in _MOMENTS:
        return lambda ns: f"{ns / 1e6:.3f} ms"
    if words[-1] == "ns" or (all_ns and name not in _COUNTED):
        return time_text
    if "bytes" in words:
        return bytes_text
    if words[-1] == "share" or name == "occupancy":
        return share_text
    return lambda value: str(int(value)) if value == int(value) else significant(value)


def _text(value: Any, format_: Callable[[float], str]) -> str:
    if isinstance(value, tuple | list):
        text = ", ".join(map(_part, value)) or "none"
    elif isinstance(value, bool) or type(value).__name__ == "bool_":
        text = "yes" if value else "no"
    elif value is None or value is pd.NA or value != value:  # noqa: PLR0124 - only NaN differs
        return NOT_MEASURED
    elif isinstance(value, str):
        text = value
    else:
        try:
            text = format_(float(value))
        except (TypeError, ValueError, OverflowError):
            text = str(value)
    text = visible(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _part(value: Any) -> str:
    """One of several values; a name with its nanoseconds is told with a unit."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int):
        return f"{value[0]} {time_text(value[1])}"
    return str(value)
