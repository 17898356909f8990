"""What a session shows: written by the thread that trains, read by every other one."""

import threading
from collections.abc import Callable
from typing import Any

from workbench.session.effects import ChangeRow
from workbench.session.listeners import Kind, Listeners
from workbench.session.records import Status
from workbench.settings import Settings

CHANGES_KEPT = 1000
"""Changes of settings that are told of: each costs memory, and its readers read all of them."""


class Board:
    """The present state, and who is told when it changes.

    Args:
        settings: In force at first.
    """

    def __init__(self, settings: Settings) -> None:
        self.changed = threading.Condition()
        """Held while something is asked for or shown; whoever waits for either waits on it."""
        self.status: Status = "ready"
        self.doing = "Nothing has begun."
        self.error: str | None = None
        self.remedy: str | None = None
        self.notes: tuple[str, ...] = ()
        self.settings = settings
        self.effective: dict[str, Any] = {}
        """What is in force by name; replaced, never changed."""
        self.step = 0
        self.rows: tuple[ChangeRow, ...] = ()
        """The newest changes; replaced, never changed."""
        self.changes_made = 0
        self.last_applied: ChangeRow | None = None
        """The change that brought the settings in force."""
        self.ending = False
        """From then on only the end itself is shown."""
        self.listeners = Listeners()
        self._waiters = 0

    def say(self, status: Status, doing: str) -> None:
        """Show what the training does now."""
        if self.ending:
            return
        changed = (self.status, self.doing) != (status, doing)
        self.status, self.doing = status, doing
        if changed:
            self.notify()
            self.tell("state")

    def trouble(self, error: str | None, remedy: str | None = None) -> None:
        """Show what went wrong, ``None`` once something newer went well."""
        self.error, self.remedy = error, remedy

    def tell(self, kind: Kind) -> None:
        """Let listeners know."""
        self.listeners.tell(kind)

    def notify(self) -> None:
        """Wake whoever waits for a change."""
        with self.changed:
            self.changed.notify_all()

    def stepped(self) -> None:
        """A step was trained; costs nothing where nobody counts them."""
        self.step += 1
        if self._waiters:
            self.notify()

    def wait_until(self, done: Callable[[], bool], timeout_s: float | None) -> None:
        """Wait until ``done()``; asked again after every step and change."""
        with self.changed:
            self._waiters += 1
            try:
                self.changed.wait_for(done, timeout_s)
            finally:
                self._waiters -= 1

    def changed_settings(self, row: ChangeRow) -> None:
        """One change more; the oldest gives way, but never the one that is in force."""
        self.changes_made += 1
        row.number = self.changes_made
        if row.applied_ns is not None:
            self.last_applied = row
        old = self.rows[: max(0, len(self.rows) + 1 - CHANGES_KEPT)]
        kept = tuple(one for one in old if one is self.last_applied)
        self.rows = (*kept, *self.rows[len(old) :], row)
