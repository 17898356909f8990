"""What a page about a Run is made of: plain results, no Run, no trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.figures.breakdown import Doubt
from workbench.findings.finding import Finding
from workbench.pages.table import Table


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Where a step, or else the window, of one device or of the loop's thread goes."""

    label: str
    """Such as "GPU 0 (NVIDIA A100)" or "CPU"."""
    parts_ns: Mapping[str, int | None]
    """Nanoseconds by category; they sum to ``total_ns``; ``None`` = not measured."""
    total_ns: int
    steps: int | None = None
    """How many steps these are together; times are then shown per step. ``None``: a window."""
    of_steps: int | None = None
    """Complete steps of the recording, where more than these: the first one and warm-up."""
    doubt: Doubt | None = None
    """What a failed check of the trace leaves open."""
    overhead: float | None = None
    """A median step under the profiler over one without it, where both are known."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    """Everything that a Run shows of itself, in the order of the page."""

    title: str
    """The name of the Run or of the trace file, without its folder."""
    verdict: str
    """One sentence."""
    headline: str | None = None
    """A step as a sum, how near its work is to the roof, what could go; ``None``: not known."""
    ceilings: str | None = None
    """What the step takes and the loader brings, each without the other; ``None``: not measured."""
    findings: tuple[Finding, ...] = ()
    """Worst first."""
    breakdowns: tuple[Breakdown, ...] = ()
    tables: tuple[Table, ...] = ()
    """Step statistics, devices, kernels, operators: folded away."""
    measured: tuple[tuple[str, str], ...] = ()
    """How it was measured: label and text (settings, versions, overhead)."""
    trust: tuple[str, ...] = ()
    """What in the trace cannot be trusted, a sentence each."""
    not_measured: Mapping[str, str] = field(default_factory=dict)
    """What is missing and why."""
