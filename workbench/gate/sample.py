"""What one side measured for one metric, whatever it came from."""

from collections.abc import Sequence
from dataclasses import dataclass, field

Block = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Numbers of one side, in the metric's own unit; empty where nothing was measured."""

    blocks: tuple[Block, ...] = ()
    """Of ``times`` blocks of steps; of ``parts`` one block a Run, a value a step."""
    values: tuple[float, ...] = ()
    """Of ``value`` one number a Run; of ``count`` one a steady step."""
    step: float | None = None
    """Of ``parts`` what a step takes, to tell them as its share."""
    apart: bool = False
    """Measured in one stretch of its own, also where step times were measured in turns."""
    reason: str | None = None
    """Why nothing was measured."""
    runs_before: int | None = None
    """Of a process's memory: how many Runs it had measured before, and may still hold parts of."""

    @property
    def measured(self) -> bool:
        """Whether there is anything to judge."""
        return bool(self.values or any(self.blocks))


@dataclass(frozen=True, kw_only=True)
class Side:
    """Everything that one side of a gate measured of one workload."""

    name: str
    samples: dict[str, Sample]
    environment: dict[str, object] = field(default_factory=dict)
    """Of its Run's record; empty for a trace alone."""
    turns: str | None = None
    """Sides with the same mark were measured block by block in turns."""


def joined(sides: Sequence[Side]) -> Side:
    """Several Runs of the same thing as one side."""
    if len(sides) == 1:
        return sides[0]
    names = dict.fromkeys(name for side in sides for name in side.samples)
    samples = {name: _joined([side.samples.get(name) for side in sides]) for name in names}
    marks = {side.turns for side in sides}
    return Side(
        name=sides[0].name,
        samples=samples,
        environment=sides[0].environment,
        turns=marks.pop() if len(marks) == 1 else None,
    )


def _joined(parts: Sequence[Sample | None]) -> Sample:
    known = [part for part in parts if part is not None and part.measured]
    if not known:
        return next((part for part in parts if part is not None), Sample())
    steps = [part.step for part in known if part.step]
    return Sample(
        blocks=tuple(block for part in known for block in part.blocks),
        values=tuple(value for part in known for value in part.values),
        step=sum(steps) / len(steps) if steps else None,
        apart=any(part.apart for part in known),
        runs_before=known[0].runs_before,
    )
