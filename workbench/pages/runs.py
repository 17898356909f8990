"""The Runs on disk as a list."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from workbench.pages.assets import page
from workbench.pages.escape import escape, visible
from workbench.pages.evidence import value_text
from workbench.pages.table import Column, Table, table_html, table_text

_COLUMNS = (
    Column(name="run", kind="name"),
    Column(name="recorded"),
    Column(name="settings"),
    Column(name="median step", kind="time"),
    Column(name="size", kind="bytes"),
)

SHOWN_MOST = 100
"""A longer list shows the newest ones: a notebook keeps every output."""


class EntryLike(Protocol):
    """What a list shows of one Run (``store.folder.RunEntry``)."""

    @property
    def folder(self) -> Path:
        """Its folder; the name of it is what loads the Run."""

    @property
    def created(self) -> str:
        """When it was recorded, ISO 8601."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that were asked for."""

    @property
    def step_ns(self) -> float | None:
        """Median step of record."""

    @property
    def size_bytes(self) -> int:
        """Size on disk."""


def runs_html(entries: Sequence[EntryLike], *, where: str) -> str:
    """The list as one cell's output."""
    if not entries:
        return page(f'<p class="wb-quiet">{escape(_empty(where))}</p>')
    return page(table_html(_table(entries, where)))


def runs_text(entries: Sequence[EntryLike], *, where: str) -> str:
    """The list for a terminal."""
    return table_text(_table(entries, where)) if entries else visible(_empty(where))


def _table(entries: Sequence[EntryLike], where: str) -> Table:
    rows = tuple(
        (
            entry.folder.name,
            entry.created[:19].replace("T", " "),
            value_text("settings", entry.settings) if entry.settings else "as it is",
            entry.step_ns,
            entry.size_bytes,
        )
        for entry in entries[-SHOWN_MOST:]
    )
    caption = f"Runs in {where}, oldest first"
    if len(entries) > SHOWN_MOST:
        caption += f"; {len(entries) - SHOWN_MOST} older ones are there as well: .names() has all"
    return Table(caption=caption, columns=_COLUMNS, rows=rows)


def _empty(where: str) -> str:
    return f"No Run in {where} yet: wb.profile(work) records one."
