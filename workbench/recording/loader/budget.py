"""What the probes may cost: a small share of what they measure."""

SHARE = 0.004
"""Share of the time spent fetching that looking closely may add: with the fixed cost of a batch it
keeps all probes together below 2 % of a step (own choice)."""
OUTLIER = 3
"""A probe that took so many times longer than usual was interrupted by something else."""


class Budget:
    """Weighs what looking closely costs against what is measured."""

    def __init__(self) -> None:
        self.measured_ns = 0
        self.spent_ns = 0

    def allows(self, cost_ns: int, current_ns: int = 0) -> bool:
        """Whether so much more may be spent, with so much measured beside what is known."""
        return cost_ns <= self.left(current_ns)

    def left(self, current_ns: int = 0) -> int:
        """What may still be spent now."""
        return int(SHARE * (self.measured_ns + current_ns)) - self.spent_ns

    def due_ns(self, cost_ns: int) -> int:
        """How much must have been measured before so much more may be spent."""
        return int((self.spent_ns + cost_ns) / SHARE)

    def spend(self, ns: int, usual_ns: int) -> int:
        """Note what a probe took; returns what it is expected to take the next time."""
        ns = min(ns, OUTLIER * usual_ns)
        self.spent_ns += ns
        return (usual_ns + ns) // 2
