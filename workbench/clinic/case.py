"""One planted fault: a question, a workload to examine, and the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkloadError
from workbench.settings import Record, Settings

if TYPE_CHECKING:
    from workbench.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Case:
    """A training loop with one fault; what the fault is stays out of its ``repr``.

    Raises:
        WorkloadError: ``seed`` or ``scale`` is out of range.
    """

    name: str
    question: str
    """What to find out, without giving the answer away."""
    answer: str = field(repr=False)
    finding: str = field(repr=False)
    """Code of the finding that must name it."""
    stall: str | None = field(repr=False)
    """Part of the exposed input wait that must be the largest; ``None``: not a loader's fault."""
    plant: Callable[[int, float], "Workload"] = field(repr=False, compare=False)
    """Makes the workload from seed and scale."""
    cure: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """Settings that take the fault away; empty where only other code does."""
    needs: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """Settings that it is profiled with, sick or cured: two ranks, or a compiled model."""
    record: Record = field(default=Record(), repr=False, hash=False)
    """What must be recorded for the finding to see it."""
    needs_accelerator: bool = False
    """Whether the fault costs time only where a device computes; a CPU's profile is silent."""
    seed: int = 0
    scale: float = 1.0
    """How large the fault is; with 0 nothing is planted, which is the healthy twin."""

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise WorkloadError(f"seed={self.seed!r} must be a whole number of at least 0.")
        known = isinstance(self.scale, int | float) and not isinstance(self.scale, bool)
        if not known or not 0 <= self.scale <= 100:
            raise WorkloadError(f"scale={self.scale!r} must be a number from 0 to 100.")

    def workload(self) -> "Workload":
        """A fresh workload, whose data is a ``DataLoader``; the same for the same seed."""
        return self.plant(self.seed, self.scale)

    def given(self) -> Settings:
        """The settings that it is sick under."""
        return Settings(**self.needs)

    def settings(self) -> Settings:
        """The same with what cures it; just the same where only other code does."""
        return Settings(**{**self.needs, **self.cure})

    def cured(self) -> "Workload":
        """The workload that :meth:`settings` cures, or the one whose code is mended."""
        return self.plant(self.seed, self.scale if self.cure else 0)
