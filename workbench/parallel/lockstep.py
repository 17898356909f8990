"""Steps in ranks that another process allows one by one, through memory that all of them share."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

NAME = "lockstep"
WORDS = 8
"""Numbers in the head, of which two are used: whole lines of the cache are nobody else's."""
VALUES = ("step_ns", "input_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns")
ROW = ("at_ns", *VALUES, "loss", "samples", "epoch")
"""What a rank tells of a step; ``NaN`` was not measured."""
QUICK_S, QUICK_POLL_S, SLOW_POLL_S = 0.2, 0.0005, 0.01
"""How often is looked whether something came: often at first, seldom in a pause."""
ALLOWED, OVER = 0, 1


class Lockstep:
    """The shared memory of one job: how many steps are allowed, and what each rank did last.

    A rank begins a step only when it is allowed, so all of them stop before the same step, and none
    has to ask the others. It needs ranks of one machine.

    Args:
        folder: The job's.
        world_size: How many ranks.
    """

    def __init__(self, folder: Path, world_size: int) -> None:
        whole = np.memmap(folder / NAME, dtype=np.float64, mode="r+")
        self._head = whole[:WORDS]
        self._rows = whole[WORDS:].reshape(world_size, 1 + len(ROW))

    @staticmethod
    def make(folder: Path, world_size: int) -> None:
        """Put it into the job's folder, with no step allowed."""
        np.zeros(WORDS + world_size * (1 + len(ROW))).tofile(folder / NAME)

    def allow(self, steps: int) -> None:
        """So many steps, counted from the beginning, may be made."""
        self._head[ALLOWED] = steps

    def end(self) -> None:
        """No more steps: the ranks hand back what they have."""
        self._head[OVER] = 1

    def next(self, step: int) -> bool:
        """Wait until a step, counted from 1, is allowed; false: there are no more."""
        for _ in waiting():
            if self._head[ALLOWED] >= step:
                return True
            if self._head[OVER]:
                return False
        raise AssertionError("waiting has no end of its own")

    def tell(self, rank: int, step: int, row: dict[str, float]) -> None:
        """A rank has made a step."""
        self._rows[rank, 1:] = [row[name] for name in ROW]
        self._rows[rank, 0] = step  # last: whoever sees the number reads the rest

    def done(self) -> int:
        """Steps that all ranks have made."""
        return int(self._rows[:, 0].min())

    def rows(self) -> list[dict[str, float]]:
        """The last step of each rank."""
        return [dict(zip(ROW, map(float, row[1:]), strict=True)) for row in self._rows]


def waiting() -> Iterator[None]:
    """Look, sleep a little, look again, without end; the sleeps grow after a while."""
    began = time.monotonic()
    while True:
        yield
        long = time.monotonic() - began > QUICK_S
        time.sleep(SLOW_POLL_S if long else QUICK_POLL_S)


def wait_for(done: Callable[[], bool], look: Callable[[], Any]) -> None:
    """Wait until ``done()``; ``look()`` is called now and then, and ends it by what it raises."""
    for turn, _ in enumerate(waiting()):
        if done():
            return
        if turn % 20 == 0:
            look()
