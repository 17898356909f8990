"""Loops whose time is planted: what they take is added to a clock, and nothing waits for it.

Whatever else runs on the machine, such a loop takes as long as it says, and the same every time.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.data import Dataset

from tests.tuning.loops import Watching

LEAST_NS = 10_000
"""Between two looks at the clock."""
JITTER = (1.0, 1.004, 0.998, 1.002, 0.996)
"""A step differs from the next by some thousandths, as on a quiet machine."""


class Clock:
    """Stands in for the module ``time``; a class, because objects are put back after a block."""

    now_ns: ClassVar[int] = 0
    turn: ClassVar[int] = 0

    @classmethod
    def spend(cls, ms: float) -> None:
        """So much work was done in this process."""
        cls.turn += 1
        cls.now_ns += round(ms * 1e6 * JITTER[cls.turn % len(JITTER)])

    @classmethod
    def perf_counter_ns(cls) -> int:
        cls.now_ns += LEAST_NS
        return cls.now_ns

    monotonic_ns = perf_counter_ns

    @classmethod
    def monotonic(cls) -> float:
        return cls.perf_counter_ns() / 1e9


class Costly(Dataset[Any]):
    """Rows that cost the process that loads them so much; worker processes share it with nobody."""

    def __init__(self, ms: float, samples: int = 512) -> None:
        self.ms = ms
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        Clock.spend(self.ms)
        return torch.full((4,), float(index % 7)), torch.tensor(index % 2)


def costing(ms: float, under_autocast: float | None = None) -> Callable[[Tensor], None]:
    """A forward pass that takes so much, and something else under autocast."""

    def spend(batch: Tensor) -> None:
        del batch
        low = under_autocast is not None and torch.is_autocast_enabled("cpu")
        Clock.spend(under_autocast if low and under_autocast is not None else ms)

    return spend


def network(ms: float, under_autocast: float | None = None) -> Watching:
    """The small network, at a planted cost a step."""
    return Watching(costing(ms, under_autocast))
