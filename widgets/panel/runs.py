"""The Runs of one folder, for the page: what they are, a note on each, and how they compare."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import RunError
from workbench.pages.escape import visible
from workbench.run.source import Runs
from workbench.store.folder import RunEntry, list_runs
from workbench.units import bytes_text, time_text
from workbench.widgets.panel.view import effect_text
from workbench.widgets.words import settings_words

SHOWN = 50
NOTE = "note.txt"
LONGEST_NOTE = 500


class Shelf:
    """The Runs below a folder, a baseline among them, and verdicts once they were asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._place = folder.absolute()
        self.baseline: str | None = None
        self._verdicts: dict[tuple[str, str], tuple[str, str]] = {}

    @property
    def runs(self) -> Runs:
        """Loads and deletes by name."""
        return Runs(self._place)

    def section(self) -> dict[str, Any]:
        """The list, newest first."""
        entries = list_runs(self._place)
        names = {entry.folder.name for entry in entries}
        if self.baseline not in names:
            self.baseline = None
        return {
            "rows": [self._row(entry) for entry in reversed(entries[-SHOWN:])],
            "baseline": self.baseline,
            "folder": visible(str(self.folder)),
            "left_out": max(0, len(entries) - SHOWN),
        }

    def _row(self, entry: RunEntry) -> dict[str, Any]:
        mark, verdict = self._verdicts.get((self.baseline or "", entry.folder.name), ("", ""))
        return {
            "name": visible(entry.folder.name),
            "created": entry.created[:16].replace("T", " "),
            "settings": visible(settings_words(entry.settings)),
            "step": time_text(entry.step_ns),
            "size": bytes_text(entry.size_bytes),
            "note": self.note(entry.folder),
            "verdict": verdict,
            "mark": mark,
        }

    def compare_all(self) -> None:
        """Hold every Run that is shown against the baseline; takes time."""
        if self.baseline is None:
            return
        first = self.runs[self.baseline]
        for entry in list_runs(self._place)[-SHOWN:]:
            name = entry.folder.name
            key = (self.baseline, name)
            if name == self.baseline or key in self._verdicts:
                continue
            try:
                change = first.compare(self.runs[name]).change
                self._verdicts[key] = (change.verdict, effect_text(change))
            except RunError as error:
                self._verdicts[key] = ("", f"not compared: {error}")

    @staticmethod
    def note(folder: Path) -> str:
        """What the user wrote about a Run."""
        with suppress(OSError, UnicodeDecodeError):
            return visible((folder / NOTE).read_text(encoding="utf-8")[:LONGEST_NOTE])
        return ""

    def write_note(self, name: str, text: str) -> None:
        """Keep a note beside a Run, whole or not at all."""
        if name not in self.runs.names():
            raise RunError(f"no Run named {name!r} in {self.folder}: it may have been deleted.")
        file = self._place / name / NOTE
        new = file.with_suffix(".partial")
        new.write_text(text[:LONGEST_NOTE], encoding="utf-8")
        new.replace(file)
