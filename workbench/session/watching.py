"""When a burst is due by itself: every so many seconds, or when the step time has changed."""

import time

import numpy as np

from workbench.recording.telemetry import Telemetry
from workbench.statistics.change import compare_steps
from workbench.units import time_text

EVERY_STEPS = 25
SIDE = 40
"""Steps on each side of a suspected change. Between the sides lie as many as there are between two
looks: whenever a change comes, one look has it there, and each side is of one kind."""
LEAST_CHANGE = 1.2
"""Smaller changes are not worth a burst (own choice)."""
REST_S = 30.0
"""Between two bursts that telemetry asks for."""


class Watcher:
    """Looks at the telemetry every few steps; a look that sees nothing costs microseconds."""

    def __init__(self) -> None:
        self.changes = False
        """Whether a change of the step time asks for a burst."""
        self._every_s: float | None = None
        self._last = time.monotonic()
        self._seen = -REST_S

    @property
    def every_s(self) -> float | None:
        """Seconds between bursts by the clock, the first one so long after this was set."""
        return self._every_s

    @every_s.setter
    def every_s(self, seconds: float | None) -> None:
        self._every_s, self._last = seconds, time.monotonic()

    def look(self, telemetry: Telemetry, step: int) -> str | None:
        """Why a burst is due now; ``None`` if it is not."""
        now = time.monotonic()
        every = self._every_s
        if every is not None and now - self._last >= every:
            self._last = now
            return f"every {time_text(every * 1e9)}"
        if not self.changes or step % EVERY_STEPS or now - self._seen < REST_S:
            return None
        reason = changed(telemetry)
        if reason is not None:
            self._seen = self._last = now
        return reason


def changed(telemetry: Telemetry) -> str | None:
    """What has changed in the last steps under the same settings, a sentence; else ``None``."""
    steps = telemetry.last(2 * SIDE + EVERY_STEPS)
    times = steps["step_ns"][~steps["profiled"]]
    if len(times) < 2 * SIDE + EVERY_STEPS or len(set(steps["change"].tolist())) > 1:
        return None
    before, after = times[:SIDE], times[-SIDE:]
    a, b = float(np.median(before)), float(np.median(after))
    if a <= 0 or b <= 0 or max(a / b, b / a) < LEAST_CHANGE:
        return None
    found = compare_steps(np.array_split(before, 4), np.array_split(after, 4))
    if found.verdict == "cannot_tell":
        return None
    return f"the step time went from {time_text(a)} to {time_text(b)}"
