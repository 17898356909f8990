"""What a change of settings did, from the times on both sides of it."""

from typing import Any

import pytest

from workbench.recording.telemetry import Telemetry
from workbench.session.board import Board
from workbench.session.effects import ChangeRow
from workbench.session.orders import Orders
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


def test_a_board_keeps_the_newest_changes_and_the_one_in_force() -> None:
    """One was applied and 1,200 refused after it: the last 1,000 of these are kept beside it."""
    board = Board(Settings())
    same = {"asked_ns": 0, "step": 0, "before": Settings(), "after": Settings(clip_norm=1.0)}
    board.changed_settings(ChangeRow(applied_ns=1, **same))
    for _ in range(1200):
        board.changed_settings(ChangeRow(error="refused", **same))
    numbers = [row.number for row in board.rows]
    assert numbers == [1, *range(202, 1202)]
    assert board.last_applied is board.rows[0]
    board.changed_settings(ChangeRow(applied_ns=2, **same))
    assert [row.number for row in board.rows] == list(range(203, 1203))


def test_bursts_that_are_over_give_way_and_those_that_wait_do_not() -> None:
    orders = Orders(Board(Settings()))
    waiting = orders.ask_burst(5, "asked for")
    for _ in range(150):
        orders.ask_burst(5, "by the clock").end("done")
    assert orders.next_burst() is waiting
    assert [burst.number for burst in orders.bursts] == [1, *range(51, 152)]
