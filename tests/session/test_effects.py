"""What a change of settings did, from the times on both sides of it."""

from typing import Any

import pytest

from workbench.recording.telemetry import Telemetry
from workbench.session.effects import ChangeRow
from workbench.settings import Settings

NAN = float("nan")
MS = 1_000_000


class Counted(Telemetry):
    """Telemetry that counts how often it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def columns(self, since_step: int = 0) -> dict[str, Any]:
        self.reads += 1
        return super().columns(since_step)

    def steps_of(self, count: int, ms: float, change: int) -> None:
        """So many steps more, all as long."""
        for _ in range(count):
            step, time = self.steps, ms * MS
            self.add((step, step, time, 0, NAN, NAN, NAN, 0, NAN, 4, 0, change, False))


def test_a_change_is_compared_until_the_next_one_comes_and_then_never_again() -> None:
    """Steps of 10 ms become 5 ms: half; what comes after step 100 belongs to the next change."""
    telemetry = Counted()
    same = {"before": Settings(), "after": Settings()}
    row = ChangeRow(number=1, asked_ns=0, applied_ns=1, step=40, **same)
    telemetry.steps_of(40, 10.0, 0)
    telemetry.steps_of(10, 5.0, 1)
    assert row.record(telemetry, None).effect is None  # too few
    telemetry.steps_of(50, 5.0, 1)
    telemetry.steps_of(50, 80.0, 2)
    for _ in range(3):
        known = row.record(telemetry, 100)
        assert known.effect is not None
        assert known.effect.ratio == pytest.approx(0.5)
        assert (known.before_ns, known.after_ns) == (10 * MS, 5 * MS)
    assert telemetry.reads == 2
