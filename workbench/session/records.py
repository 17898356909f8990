"""What a session tells about itself: frozen records, cheap to make and safe on every thread."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from workbench.settings import Settings

if TYPE_CHECKING:
    from workbench.session.burst import Burst
    from workbench.session.trial import Trial
    from workbench.statistics.change import Change as Effect

Status = Literal["ready", "running", "paused", "busy", "stopping", "stopped", "failed"]
"""``ready``: nothing has begun. ``busy``: training waits while something else is done, such as a
comparison. ``failed``: an error ended the steps; see ``error`` and ``remedy``."""


@dataclass(frozen=True, kw_only=True)
class State:
    """A session at one moment."""

    status: Status
    doing: str
    """One sentence for a status line."""
    error: str | None = None
    """What went wrong last; ``None`` once something newer went well."""
    remedy: str | None = None
    """What to do about it."""
    settings: Settings = field(default_factory=Settings)
    """In force."""
    pending: Settings | None = None
    """Will be in force from the next step on."""
    step: int = 0
    """Steps that were trained."""
    epoch: int = 0
    """Epochs that were read to their end."""
    samples_per_s: float | None = None
    """Over the last steps; ``None``: not measured."""
    overhead_ratio: float | None = None
    """Step time with telemetry over step time without it, by its own clocks; 1.004 is 0.4 %."""
    bursts: "tuple[Burst, ...]" = ()
    """The newest 100 of this session and those that wait, oldest first; older Runs are on disk."""
    trial: "Trial | None" = None
    """The last comparison that was asked for."""
    notes: tuple[str, ...] = ()
    """What was decided for the user under the settings in force, and a line for each rank."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of settings: asked for, then applied or refused."""

    number: int
    """Counts from 1."""
    asked_ns: int
    """``time.monotonic_ns()`` when it was asked for."""
    applied_ns: int | None
    """When the first step under it could begin; ``None`` where it was refused."""
    step: int
    """The first step under it."""
    before: Settings
    after: Settings
    error: str | None = None
    """Why it is not in force (any more), and what is instead."""
    note: str | None = None
    """What was lost by it, such as the rest of an epoch that cannot be continued."""
    effect: "Effect | None" = None
    """Step time after it over step time before it, with its interval; ``None`` until enough steps
    were measured on both sides."""
    before_ns: float | None = None
    after_ns: float | None = None
    """Medians of the very times that ``effect`` compares; ``None`` as long as it is."""
    per: Literal["step", "sample"] = "step"
    """What the effect compares: a sample where the batch size differs."""
