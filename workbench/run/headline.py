"""The answer in one line: a step as a sum, how near its work is to the roof, and what could go."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.figures.palette import category
from workbench.figures.scale import time_scale
from workbench.units import count_text, share_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.pages.view import Breakdown
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run

OPERATORS = ("forward", "backward", "optimizer", "other_operators")
"""Parts of the loop's thread that are operators: what a device's compute is on the CPU."""
MOST_PARTS = 4
SMALL = 0.01
"""Own choice: parts below this share of the step are told as one."""
LEAST_COVERAGE = 0.5
"""Own choice: of less counted time the roof says nothing about the whole."""
MOST_FIXES = 2
NOTED_OVERHEAD = 1.05
"""Own choice: less is within what steps differ by anyway."""
LONGEST_FIX = 40
SEVERAL = re.compile(r"^On \d+ ranks( \([^)]*\))?: ")
OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A step, or the window, as a sum."""

    whole: str
    """``step`` or ``window``."""
    of: str | None = None
    """The rank and device, where there are several."""
    total_ns: float
    parts: tuple[tuple[str, float], ...]
    """Label and nanoseconds; they sum to ``total_ns``."""
    roof_share: float | None
    """The least time of the first part's work as a share of what it took; ``None``: not known."""
    fixes: tuple[tuple[str, float], ...]
    """What could go, and the nanoseconds of a step that it could save at most, largest first."""
    overhead: float | None
    """How much longer than without the profiler these steps take, where that is known."""
    steps: int | None = None
    """Of how many steps the numbers are the mean; ``None``: of a window."""

    @property
    def sentence(self) -> str:
        """The line at the top of the page."""
        scale = time_scale(self.total_ns)
        texts = rounded([ns / scale.size for _, ns in self.parts], self.total_ns / scale.size)
        said: list[str] = []
        for (label, _), text in zip(self.parts, texts[1:], strict=True):
            if said and not float(text):
                continue  # too little to be seen beside the others
            roof = ""
            if not said and self.roof_share is not None:
                roof = f" ({share_text(self.roof_share)} of the roof)"
            said.append(f"{text} {label}{roof}")
        of = "" if self.of is None else f" of {self.of}"
        line = f"{self.whole}{of} {texts[0]} {scale.unit} = {' + '.join(said)}"
        if self.fixes:
            digits = max(0, 2 - math.floor(math.log10(max(self.total_ns / scale.size, 1e-9))))
            fixes = [f"{label} −{ns / scale.size:.{digits}f}" for label, ns in self.fixes]
            line += f"; best case by fix: {', '.join(fixes)} {scale.unit}"
        if self.steps is not None:
            noun = "step" if self.steps == 1 else "steps"
            line += f" (mean of {count_text(self.steps)} {noun}{self._slower()})"
        return f"{line}."

    def _slower(self) -> str:
        if self.overhead is None or self.overhead <= NOTED_OVERHEAD:
            return ""
        slower = f"{self.overhead:.2f} times a step without it"
        return f" under the profiler, which slows the host: {slower}"

    def __repr__(self) -> str:
        return self.sentence


def headline(run: Run) -> Headline | None:
    """The headline of the rank and device that the verdict is about, else of the first ones.

    ``None`` where nothing of a step was recorded there.
    """
    from workbench.run.breakdowns import breakdowns
    from workbench.run.verdict import foremost

    rank, device = foremost(run)
    fixes = _fixes(run, rank)
    if rank.voids("devices") or not (shown := breakdowns(rank)):
        return None
    first = shown[0 if device is None else tuple(rank.device_time).index(device)]
    if first.total_ns <= 0 or first.doubt == "times":
        return None
    per = first.steps or 1
    parts, share = _parts(rank, first), None
    whole = "step" if first.steps else "window"
    several = len(rank.device_time) > 1
    roof = None if several else rank.costs.roofline  # the roof is of all devices together
    if roof is not None and (roof.coverage or 0) >= LEAST_COVERAGE and roof.share is not None:
        share = roof.share
        saved = (roof.time_ns - roof.roof_ns) / max(1, roof.steps)
        if roof.steps:
            fixes.append((f"{parts[0][0]} at its roof", min(saved, parts[0][1] / per)))
    fixes = sorted((each for each in fixes if each[1] > 0), key=lambda each: -each[1])
    return Headline(
        whole=whole,
        of=_of(run, rank, device),
        total_ns=first.total_ns / per,
        parts=tuple((label, ns / per) for label, ns in parts),
        roof_share=share,
        fixes=tuple(fixes[:MOST_FIXES]),
        overhead=first.overhead,
        steps=first.steps,
    )


def _parts(rank: RankAnalysis, shown: Breakdown) -> list[tuple[str, float]]:
    """The work first, then what else is at least 1 %, the rest as one."""
    measured = {name: float(ns) for name, ns in shown.parts_ns.items() if ns}
    if rank.device_indices:
        work = ("compute", measured.pop("compute", 0.0))
    else:
        work = ("operators", sum(measured.pop(name, 0.0) for name in OPERATORS))
    rest = sorted(measured.items(), key=lambda each: -each[1])
    large = [each for each in rest[:MOST_PARTS] if each[1] >= SMALL * shown.total_ns]
    parts = [work, *((category(name).label, ns) for name, ns in large)]
    left = shown.total_ns - sum(ns for _, ns in parts)
    return [*parts, (OTHER, left)] if left > 0 else parts


def _of(run: Run, rank: RankAnalysis, device: int | None) -> str | None:
    from workbench.run.breakdowns import device_name, rank_label

    said = [rank_label(rank).lower()] if len(run.ranks) > 1 and rank.rank is not None else []
    if len(rank.device_time) > 1:
        said.append(device_name(rank, next(iter(rank.device_time)) if device is None else device))
    return ", ".join(said) or None


def _fixes(run: Run, rank: RankAnalysis) -> list[tuple[str, float]]:
    """What the findings about this rank, or about several, could save."""
    from workbench.run.verdict import limiting

    found = [
        f
        for f in limiting(run)
        if f.saving_ns_per_step_at_most and f.verdict == "yes" and f.rank in (None, rank.rank)
    ]
    return [(f"{f.code} ({brief(f.title)})", f.saving_ns_per_step_at_most or 0) for f in found]


def brief(title: str) -> str:
    """What a title says before its numbers: up to the colon, else as many words as fit."""
    said = SEVERAL.sub("", title.rstrip(".")).split(": ")[0]
    if len(said) <= LONGEST_FIX:
        return said
    return f"{said[:LONGEST_FIX].rsplit(' ', 1)[0].rstrip(',')} …"


def rounded(values: Sequence[float], total: float) -> list[str]:
    """The total and its parts with the same decimals, so that what is shown sums to what is shown.

    What rounding leaves over goes to the parts that it cut most.
    """
    digits = 2 - math.floor(math.log10(total)) if total > 0 else 0
    digits = max(0, digits)
    unit = 10.0**-digits
    whole = round(total / unit)
    floors = [math.floor(value / unit) for value in values]
    left = whole - sum(floors)
    order = sorted(range(len(values)), key=lambda at: floors[at] - values[at] / unit)
    for at in order[: max(0, left)]:
        floors[at] += 1
    return [f"{number * unit:.{digits}f}" for number in (whole, *floors)]
