"""A burst of torch.profiler that was asked for: what has become of it."""

import threading
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.run.run import Run

BurstStatus = Literal["waiting", "recording", "reading", "done", "failed"]
MOST_STEPS = 20


class Burst:
    """A short window under torch.profiler; it becomes a Run on disk.

    Attributes:
        number: Counts from 1 in a session.
        steps: How many steps are recorded.
        reason: Why: asked for, every so many seconds, or the change that telemetry saw.
        status: ``waiting`` for the next step, ``recording``, ``reading`` in another process,
            ``done`` or ``failed``.
        run: The Run, once it is on disk.
        findings: Its findings, worst first, once they are known.
        error: What went wrong, and what is there nevertheless.
        step: The first step in it.
        began_ns, ended_ns: When its steps ran, by ``time.monotonic_ns``; ``None`` before.
    """

    def __init__(self, *, number: int, steps: int, reason: str) -> None:
        self.number = number
        self.steps = steps
        self.reason = reason
        self.status: BurstStatus = "waiting"
        self.run: Run | None = None
        self.findings: tuple[Finding, ...] | None = None
        self.error: str | None = None
        self.step: int | None = None
        self.began_ns: int | None = None
        self.ended_ns: int | None = None
        self._over = threading.Event()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is done or has failed; tells whether it is."""
        return self._over.wait(timeout_s)

    def end(self, status: Literal["done", "failed"], error: str | None = None) -> None:
        """Nothing more will come of it."""
        if not self._over.is_set():
            self.status, self.error = status, error
            self._over.set()

    @property
    def over(self) -> bool:
        """Whether it is done or has failed."""
        return self._over.is_set()

    def __repr__(self) -> str:
        told = f": {self.error}" if self.error else ""
        return f"Burst({self.number}, {self.steps} steps, {self.status}{told})"
