"""A comparison inside a session that was asked for: what has become of it."""

import threading
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.settings import Settings
    from workbench.tuning.verification import Verification

TrialStatus = Literal["waiting", "running", "done", "failed", "cancelled"]


class Trial:
    """``wb.verify`` between two steps of a session; training waits and then goes on.

    Attributes:
        asked: The finding or settings.
        status: ``waiting`` for the next step, ``running``, ``done``, ``failed`` or ``cancelled``.
        verification: The verdict, once it is there.
        error: What went wrong.
    """

    def __init__(self, asked: "Finding | Settings") -> None:
        self.asked = asked
        self.options: dict[str, Any] = {}
        self.status: TrialStatus = "waiting"
        self.verification: Verification | None = None
        self.error: str | None = None
        self._cancelled = threading.Event()
        self._over = threading.Event()

    def cancel(self) -> None:
        """Measure no more; training goes on. Nothing happens when it is over."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """Whether somebody wants no more of it."""
        return self._cancelled.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is over; tells whether it is."""
        return self._over.wait(timeout_s)

    def end(self, status: Literal["done", "failed", "cancelled"], error: str | None = None) -> None:
        """Nothing more will come of it."""
        if not self._over.is_set():
            self.status, self.error = status, error
            self._over.set()

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self._over.is_set()

    def __repr__(self) -> str:
        what = getattr(self.asked, "code", None) or self.asked
        told = f": {self.error}" if self.error else ""
        return f"Trial({what}, {self.status}{told})"
