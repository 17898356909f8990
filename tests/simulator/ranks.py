"""A simulated job of many ranks on a ring, with truth: what each step takes, and where it goes.

A rank computes forward and backward; its gradients leave in buckets, each when its part of backward
is done. A bucket is summed over a ring when the last rank has its part: 2(n-1) messages one after
the other, each a latency and an n-th of the bytes. A step ends when compute and sums are over.
"""

import random
from dataclasses import dataclass

from workbench.analysis.scaling.points import Point
from workbench.statistics.link import Timed


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job; times in nanoseconds."""

    samples: int
    """Of a rank in a step."""
    forward_ns: float
    """Of a sample."""
    backward_ns: float
    fixed_ns: float = 0.0
    """Of every step, whatever its samples."""
    buckets: tuple[int, ...]
    """Bytes of each, in the order in which they are ready, evenly over backward."""
    latency_ns: float
    ns_per_byte: float
    spread_ns: float = 0.0
    """Standard deviation of a rank's forward by chance."""
    steps: int = 60


def ring_ns(job: Job, ranks: int, size: int) -> float:
    """Message after message."""
    took = 0.0
    for _message in range(2 * (ranks - 1)):
        took += job.latency_ns + size / ranks * job.ns_per_byte
    return took


def run(job: Job, ranks: int, *, seed: int = 0) -> Point:
    """What a profiler would measure of it: means over ranks and steps."""
    draw = random.Random(f"{seed} {ranks}")
    step = exposed = waited = 0.0
    for _ in range(job.steps):
        begins = [
            job.fixed_ns + job.samples * job.forward_ns + draw.gauss(0, job.spread_ns)
            for _ in range(ranks)
        ]
        backward = job.samples * job.backward_ns
        busy: list[tuple[float, float]] = []
        end = 0.0
        for number, size in enumerate(job.buckets, 1):
            ready = max(begins) + backward * number / len(job.buckets)
            if ranks > 1:
                start = max(ready, end)
                end = start + ring_ns(job, ranks, size)
                busy.append((start, end))
        for began in begins:
            done = began + backward
            own = max(done, end)
            moving = sum(max(0.0, b - max(a, done)) for a, b in busy)
            step += own
            exposed += moving
            waited += own - done - moving
    count = ranks * job.steps
    room = job.samples * job.backward_ns * (1 - 1 / len(job.buckets))
    return Point(
        world_size=ranks,
        step_ns=step / count,
        samples_per_step=float(job.samples * ranks),
        exposed_ns=exposed / count,
        wait_ns=waited / count,
        volumes=tuple(
            Timed(kind="all_reduce", ranks=ranks, bytes=size, ns=ring_ns(job, ranks, size))
            for size in job.buckets
            if ranks > 1
        ),
        overlap_ns=room if ranks > 1 else None,
    )
