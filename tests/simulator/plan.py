"""What kind of training loop to run, and which faults strike it, drawn at random."""

from dataclasses import dataclass

from tests.simulator.machine import Draw

US, MS = 1_000, 1_000_000

FAULTS = (
    "input",
    "item",
    "pageable copy",
    "synchronize",
    "logging",
    "allocation",
    "free",
    "first launch",
    "module load",
    "compile",
    "capture",
    "graph",
    "profiler",
    "flush",
    "collector",
    "python",
    "unrecorded work",
    "collective",
    "prefetch",
    "nonzero",
    "polling",
    "gradient hook",
    "second device",
    "side stream",
)
OF_OLD = frozenset(FAULTS) - {"compile", "capture", "graph", "collector", "flush"}
"""What a profiler of torch 1.8 could have met."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What kind of loop to run."""

    steps: int
    layers: int
    kernel: tuple[float, float]
    """Shortest and longest kernel in ns: short ones make the loop launch-bound."""
    operator: tuple[float, float]
    """Host time of an operator around its launch."""
    python: tuple[float, float]
    """Host time between operators."""
    faults: dict[str, tuple[float, float]]
    """Faults that may occur in a step, with their shortest and longest duration."""
    stacks: bool
    collector_seen: bool
    """Collections are marked by our own capture (or by a call in the stacks)."""
    user_input: bool
    """Input is waited for in a range of the user instead of torch's loader."""
    marks: bool
    """Steps are marked by the profiler."""


def drawn_plan(draw: Draw, *, stacks: bool, old: bool) -> Plan:
    """A random loop: launch-bound or not, with one to five kinds of fault."""
    kernel = draw.choice(((2 * US, 8 * US), (10 * US, 80 * US), (80 * US, 600 * US)))
    known = sorted(OF_OLD if old else FAULTS)
    names = draw.sample(known, draw.randint(1, 5))
    return Plan(
        steps=draw.randint(3, 5),
        layers=draw.randint(3, 10),
        kernel=kernel,
        operator=draw.choice(((3 * US, 8 * US), (10 * US, 30 * US))),
        python=draw.choice(((1 * US, 5 * US), (10 * US, 60 * US))),
        faults={name: draw.choice(((0.1 * MS, 1 * MS), (1 * MS, 20 * MS))) for name in names},
        stacks=stacks,
        collector_seen=draw.chance(0.8),
        user_input=not old and draw.chance(0.3),
        marks=draw.chance(0.8),
    )
