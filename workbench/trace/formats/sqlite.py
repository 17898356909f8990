"""Opens an SQLite database from a stranger, so that nothing in it can act.

Read-only and immutable, no extensions, no views or virtual tables, no computed columns: only stored
columns of plain tables are selected, and all queries together end after a time limit.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.errors import TraceError
from workbench.trace.formats.content import Content

MAGIC = b"SQLite format 3\0"
TIME_LIMIT_S = 600.0
_ROWS = 1 << 13
_LONGEST_VALUE = 1 << 20
_LONGEST_TEXT = 1 << 14
_INSTRUCTIONS = 100_000
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
_DESCRIBE = "table_xinfo"
_STORED = 0
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""The second when a message of SQLite quotes bytes of the file that are no text."""
_SETTINGS = ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "mmap_size=0")


class Tables:
    """The plain tables of an open database."""

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        self.name = name
        self._connection = connection
        self._columns: dict[str, tuple[str, ...]] = {}
        for table, text in self._rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
            plain = isinstance(table, str) and not str(text).upper().startswith("CREATE VIRTUAL")
            if plain and '"' not in table:
                self._columns[table] = ()

    def __contains__(self, table: str) -> bool:
        return table in self._columns

    def names(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(self._columns)

    def columns(self, table: str) -> tuple[str, ...]:
        """Names of a table's stored columns, empty where there is no such table."""
        if table in self._columns and not self._columns[table]:
            described = self._rows(f'PRAGMA {_DESCRIBE}("{table}")', table)
            stored = (name for _, name, _, _, _, _, hidden in described if hidden == _STORED)
            self._columns[table] = tuple(name for name in stored if '"' not in name)
        return self._columns.get(table, ())

    def select(self, table: str, wanted: Sequence[str]) -> Iterator[list[list[Any]]]:
        """The wanted columns of a table, some thousand rows at a time.

        A column that this version of the table lacks is all ``None``.

        Raises:
            TraceError: The table is damaged.
        """
        there = self.columns(table)
        present = [column for column in wanted if column in there]
        if not present:
            return
        listed = ", ".join(f'"{column}"' for column in present)
        query = f'SELECT {listed} FROM "{table}"'  # noqa: S608 - a table and columns that are there
        rows = self._rows(query, table)
        while piece := [row for _, row in zip(range(_ROWS), rows, strict=False)]:
            found = dict(zip(present, map(list, zip(*piece, strict=True)), strict=True))
            yield [found.get(column, [None] * len(piece)) for column in wanted]

    def _rows(self, query: str, table: str = "") -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(query)
        except _FAILURES as error:
            raise _damaged(self.name, table, error) from None


@contextmanager
def open_tables(content: Content, *, time_limit_s: float = TIME_LIMIT_S) -> Iterator[Tables]:
    """Open a database for reading; it is closed on leaving.

    Raises:
        TraceError: It is no database, or damaged.
    """
    connection = _connect(content)
    ends = time.monotonic() + time_limit_s
    try:
        connection.text_factory = lambda raw: raw[:_LONGEST_TEXT].decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(lambda: time.monotonic() > ends, _INSTRUCTIONS)
        yield Tables(content.name, connection)
    except _FAILURES as error:
        raise _damaged(content.name, "", error) from None
    finally:
        connection.close()


def _connect(content: Content) -> sqlite3.Connection:
    try:
        if content.path is not None:
            return _open_file(content.path)
        connection = sqlite3.connect(":memory:")
        connection.deserialize(bytes(content.whole()))
    except _FAILURES as error:
        raise _damaged(content.name, "", error) from None
    return connection


def _open_file(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def _authorize(action: int, what: str | None, *_: str | None) -> int:
    describes = action == sqlite3.SQLITE_PRAGMA and what == _DESCRIBE
    return sqlite3.SQLITE_OK if describes or action in _ALLOWED else sqlite3.SQLITE_DENY


def _damaged(name: str, table: str, error: Exception) -> TraceError:
    where = f" in table {table}" if table else ""
    why = "its schema is no text" if isinstance(error, UnicodeDecodeError) else str(error)
    why = "it took longer than the time limit" if why == "interrupted" else why
    return TraceError(
        f"{name} cannot be read as a database{where}: {why}. Export it again, or copy it again "
        "if it came over a network."
    )
