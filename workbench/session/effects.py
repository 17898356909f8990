"""What a change of settings did to the step time, from the telemetry on both sides of it."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from workbench.recording.telemetry import Telemetry
from workbench.session.records import Change
from workbench.settings import Settings
from workbench.statistics.change import Change as Effect
from workbench.statistics.change import compare_steps

MOST = 200
"""Steps of a side that are compared."""
LEAST = 20
BLOCKS = 4
LEAD = 2
"""The first steps after a change find warm caches of the other settings, or none."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Both sides of a change, as far as they are known."""

    effect: Effect | None = None
    before_ns: float | None = None
    after_ns: float | None = None
    per: Literal["step", "sample"] = "step"


@dataclass(kw_only=True)
class ChangeRow:
    """A change as it grows."""

    number: int = 0
    asked_ns: int
    step: int
    before: Settings
    after: Settings
    applied_ns: int | None = None
    error: str | None = None
    note: str | None = None
    _known: tuple[int, Compared] = field(default=(0, Compared()), repr=False)
    _settled: bool = field(default=False, repr=False)
    """Whether nothing more will be known: the next change has come."""
    _final: Change | None = field(default=None, repr=False)

    def record(self, telemetry: Telemetry, until: int | None) -> Change:
        """The change as it is known now; ``until`` is the step at which the next one came."""
        if self._final is not None:
            return self._final
        known = self._compared(telemetry, until)
        told = Change(
            number=self.number,
            asked_ns=self.asked_ns,
            applied_ns=self.applied_ns,
            step=self.step,
            before=self.before,
            after=self.after,
            error=self.error,
            note=self.note,
            effect=known.effect,
            before_ns=known.before_ns,
            after_ns=known.after_ns,
            per=known.per,
        )
        if self._settled or self.applied_ns is None:
            self._final = told
        return told

    def _compared(self, telemetry: Telemetry, until: int | None) -> Compared:
        if self.applied_ns is None:
            return Compared()
        if self._settled or self._known[0] >= MOST:
            return self._known[1]
        self._settled = until is not None
        steps = telemetry.columns(max(0, self.step - MOST - LEAD))
        number, step = steps["step"], steps["step"]
        count = int(((number >= self.step) & ((until is None) | (number < (until or 0)))).sum())
        seen, known = self._known
        due = self._settled or seen == 0 or count >= 2 * seen
        if not due or count < LEAST + LEAD:
            return known
        good = ~steps["profiled"] & (steps["step_ns"] > 0)
        after = good & (step >= self.step + LEAD)
        after &= step < (self.step + LEAD + MOST if until is None else until)
        mine = steps["change"][step == self.step - 1]
        before = good & (step < self.step)
        if len(mine):
            before &= steps["change"] == mine[0]
        each = _samples(steps, before) != _samples(steps, after)
        times = steps["step_ns"] / (steps["samples"] if each else 1.0)
        sides = times[before][-MOST:], times[after][:MOST]
        if min(map(len, sides)) >= LEAST:
            blocks = [np.array_split(side, BLOCKS) for side in sides]
            known = Compared(
                effect=compare_steps(blocks[0], blocks[1]),
                before_ns=float(np.nanmedian(sides[0])),
                after_ns=float(np.nanmedian(sides[1])),
                per="sample" if each else "step",
            )
        self._known = (count, known)
        return known


def _samples(steps: dict[str, Any], which: Any) -> float:
    found = steps["samples"][which]
    return float(np.nanmax(found)) if len(found) and not np.isnan(found).all() else -1.0
