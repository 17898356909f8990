"""What the probes may cost: a small share of what they measure."""

SHARE = 0.003
"""Share of the time spent fetching that looking closely and the fixed cost of batches may add: it
keeps all probes together below 2 % of a step (own choice)."""
LEAST = 0.001
"""What of it is left for looking closely where batches are so short that their cost takes it."""
DETAIL_SHARE = 0.005
"""Share that reading the kernel's counters and the fixed cost of batches may add together, apart
from looking closely: without counters of its own, a batch's wait for a processor is a guess."""
DETAIL_LEAST = 0.001
"""What of it is left for counters where batches are so short that the fixed cost takes it."""
BATCH_NS = 10_000
"""Fixed cost of a batch."""
OUTLIER = 3
"""A probe that took so many times longer than usual was interrupted by something else."""


class Budget:
    """Weighs what looking closely costs against what is measured.

    Args:
        share: Of the time measured, what may be spent.
        least: Of it what remains where the fixed cost of batches takes more.
        each_ns: Fixed cost of a batch, which counts as spent.
    """

    def __init__(self, share: float = SHARE, least: float = LEAST, each_ns: int = 0) -> None:
        self.batches = 0
        self._share, self._least, self._each_ns = share, least, each_ns
        self.measured_ns = 0
        self.spent_ns = 0

    def allows(self, cost_ns: int, current_ns: int = 0) -> bool:
        """Whether so much more may be spent, with so much measured beside what is known."""
        return cost_ns <= self.left(current_ns)

    def left(self, current_ns: int = 0) -> int:
        """What may still be spent now."""
        return int(self._usable() * (self.measured_ns + current_ns)) - self.spent_ns

    def due_ns(self, cost_ns: int) -> int:
        """How much must have been measured before so much more may be spent; 0 for nothing."""
        return 0 if cost_ns <= 0 else int((self.spent_ns + cost_ns) / self._usable())

    def _usable(self) -> float:
        if not self._each_ns or not self.measured_ns:
            return self._share
        return max(self._share - self._each_ns * self.batches / self.measured_ns, self._least)

    def spend(self, ns: int, usual_ns: int) -> int:
        """Note what a probe took; returns what it is expected to take the next time."""
        ns = min(ns, OUTLIER * usual_ns)
        self.spent_ns += ns
        return (usual_ns + ns) // 2
