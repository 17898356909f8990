"""What was measured of a job at one world size."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.statistics.link import Timed


@dataclass(frozen=True, kw_only=True)
class Point:
    """A job with so many ranks; times are nanoseconds of one step, means over its ranks."""

    world_size: int
    step_ns: float
    samples_per_step: float
    """Of all ranks together."""
    exposed_ns: float = 0.0
    """Transfer that nothing hides."""
    wait_ns: float = 0.0
    """Exposed waiting for late ranks."""
    volumes: tuple[Timed, ...] = ()
    """The collectives of a step, by kind and size, with their transfer."""
    overlap_ns: float | None = None
    """Time in which communication can run beside compute; ``None``: not known."""

    @property
    def compute_ns(self) -> float:
        """The rest of the step: compute, input, host."""
        return max(self.step_ns - self.exposed_ns - self.wait_ns, 0.0)

    @property
    def samples_per_rank(self) -> float:
        """What one rank does in a step."""
        return self.samples_per_step / self.world_size

    @property
    def transfer_ns(self) -> float:
        """Of all collectives, hidden or not."""
        return sum(each.ns for each in self.volumes)


@dataclass(frozen=True, kw_only=True)
class Share:
    """Where the time of a rank goes, as shares of what an ideal job would have done in it."""

    world_size: int
    efficiency: float
    """Samples a second and rank, over those of one rank; above 1 where pieces fit caches better."""
    exposed: float
    wait: float
    slower: float
    """What else is lost: compute that takes longer than one rank's; below 0 where it is faster."""
    step_ns: float
    low: float | None = None
    """Of the efficiency, for a prediction."""
    high: float | None = None
    predicted: bool = False


def share_of(
    *,
    world_size: int,
    step_ns: float,
    exposed_ns: float,
    wait_ns: float,
    ideal_ns: float,
    predicted: bool = False,
    error: float | None = None,
) -> Share:
    """Divide a step by what it was for; efficiency and losses sum to 1.

    Args:
        world_size: How many ranks.
        step_ns: Of the job.
        exposed_ns: Transfer in it that nothing hides.
        wait_ns: Exposed waiting in it.
        ideal_ns: What one rank alone takes for the samples that a rank does in the step.
        predicted: Whether this is a prediction.
        error: Relative, of the step.
    """
    efficiency = ideal_ns / step_ns
    most = efficiency / (1 - min(error or 0.0, 0.9))
    return Share(
        world_size=world_size,
        efficiency=efficiency,
        exposed=exposed_ns / step_ns,
        wait=wait_ns / step_ns,
        slower=1 - efficiency - (exposed_ns + wait_ns) / step_ns,
        step_ns=step_ns,
        low=None if error is None else efficiency / (1 + error),
        high=None if error is None else max(min(most, 1.0), efficiency),
        predicted=predicted,
    )
