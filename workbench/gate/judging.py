"""A verdict for every metric: pass, fail, or cannot tell."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from workbench.gate.budget import Rule
from workbench.gate.metrics import Metric
from workbench.gate.sample import Sample
from workbench.gate.testing import Shift, Values, holm, shift_between
from workbench.statistics.blocks import LEAST_STEPS, split_to
from workbench.statistics.noise import noise_floor
from workbench.units import share_text

Verdict = Literal["pass", "fail", "cannot_tell"]
BLOCKS_WANTED = 8
"""Two sides of four numbers cannot reach the 1 % level by ranks: longer blocks are cut."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One metric of one workload, and what can be said of it.

    ``change`` is how much worse the head is: a ratio minus 1; of ``parts`` a share of the step.
    """

    workload: str
    metric: Metric
    verdict: Verdict
    base: float | None
    head: float | None
    limit: float | None = None
    """An absolute limit of the budget, in the metric's unit."""
    allow: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    noise: float | None = None
    """What the same code differs from itself by (A/A), as a share."""
    smallest_effect: float | None = None
    """The smallest change that nine of ten such gates would have failed for."""
    chance: float | None = None
    """Of seeing so much without a change beyond the limit, corrected for all tests (Holm)."""
    reason: str | None = None

    @property
    def key(self) -> str:
        """Its name among all of a gate."""
        return f"{self.workload}: {self.metric.name}" if self.workload else self.metric.name


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is to be judged: one metric of one workload, with the rule for it."""

    workload: str
    metric: Metric
    rule: Rule
    base: Sample | None
    head: Sample
    interleaved: bool = False

    @property
    def allow(self) -> float:
        """How much worse it may become, as a share."""
        return self.metric.allow if self.rule.allow is None else self.rule.allow

    @property
    def ignore_below(self) -> float:
        """Differences that are never a failure, in the metric's unit."""
        given = self.rule.ignore_below
        return self.metric.ignore_below if given is None else given


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A case with its numbers, before all chances are corrected together."""

    case: Case
    shift: Shift | None
    limit: float
    """On the scale of the shift."""
    base: float
    head: float
    noise: float | None
    unit: float
    """Of the scale: what a difference of the metric's unit is on it, for parts."""


def tested(case: Case) -> Tested | None:
    """The numbers of a case of ``times`` or ``parts``; ``None`` where a side lacks them."""
    if case.base is None or not (case.base.measured and case.head.measured):
        return None
    if case.metric.kind == "times":
        return _times(case)
    return _parts(case, case.base)


def _times(case: Case) -> Tested | None:
    assert case.base is not None
    sides = [_usable(side, case.interleaved) for side in (case.base, case.head)]
    if not all(sides):
        return None
    sign = 1.0 if case.metric.worse == "more" else -1.0
    logs = [sign * np.log([np.median(block) for block in side]) for side in sides]
    medians = [float(np.median([np.median(block) for block in side])) for side in sides]
    floors = [f for side in sides if (f := noise_floor(side)) is not None]
    return Tested(
        case=case,
        shift=shift_between(logs[0], logs[1], interleaved=case.interleaved),
        limit=float(np.log1p(case.allow)),
        base=medians[0],
        head=medians[1],
        noise=max(floors, default=None),
        unit=0.0,
    )


def _usable(side: Sample, interleaved: bool) -> list[Values]:
    blocks = [np.asarray(block, np.float64) for block in side.blocks if len(block) >= LEAST_STEPS]
    return blocks if interleaved else split_to(blocks, BLOCKS_WANTED)


def _parts(case: Case, base: Sample) -> Tested | None:
    """Means of groups of steps: waits come in bursts, so that a median would miss them."""
    step = base.step
    if not step:
        return None
    groups = [_groups(side) for side in (base, case.head)]
    means = [np.array([group.mean() for group in side]) / step for side in groups]
    if not all(side.size for side in means):
        return None
    halves = [_apart(side) for side in means if side.size > 1]
    return Tested(
        case=case,
        shift=shift_between(means[0], means[1], interleaved=case.interleaved),
        limit=case.allow,
        base=float(means[0].mean()) * step,
        head=float(means[1].mean()) * step,
        noise=max(halves, default=None),
        unit=1 / step,
    )


def _groups(side: Sample) -> list[Values]:
    blocks = [np.asarray(block, np.float64) for block in side.blocks if len(block)]
    if len(blocks) >= BLOCKS_WANTED or not blocks:
        return blocks
    parts = -(-BLOCKS_WANTED // len(blocks))
    return [part for block in blocks for part in np.array_split(block, min(parts, len(block)))]


def _apart(values: Values) -> float:
    half = values.size // 2
    return float(abs(values[values.size - half :].mean() - values[:half].mean()))


def judge_tested(found: Mapping[str, Tested], *, level: float) -> dict[str, Judged]:
    """Verdicts for all tested cases together, their chances corrected for their number."""
    known = {key: each for key, each in found.items() if each.shift is not None}
    counted = _counted(known)
    chances = {key: each.shift.chance(each.limit) for key, each in counted.items() if each.shift}
    corrected = holm(chances)
    strictest = level / max(len(chances), 1)
    judged = {}
    for key, each in found.items():
        if each.shift is None:
            judged[key] = _too_few(each)
        else:
            chance = corrected.get(key, corrected.get(_twin(key), 1.0))
            judged[key] = _judged(each, each.shift, chance, level, strictest)
    return judged


def _counted(found: Mapping[str, Tested]) -> dict[str, Tested]:
    """Without throughput where the step time is there: of as many samples it is the same test."""
    return {
        key: each for key, each in found.items() if _twin(key) not in found or _twin(key) == key
    }


def _twin(key: str) -> str:
    return key.removesuffix("throughput") + "step_time" if key.endswith("throughput") else key


def _judged(found: Tested, shift: Shift, chance: float, level: float, strictest: float) -> Judged:
    case, ratio = found.case, found.case.metric.log_scale()
    share = (lambda x: float(np.expm1(x))) if ratio else float
    noise = found.noise or 0.0
    small = _too_small(found, shift)
    beyond_noise = share(shift.estimate) > noise
    over = chance <= level and beyond_noise and not small
    within = small or (shift.upper() <= found.limit and noise <= case.allow)
    verdict: Verdict = "fail" if over else "pass" if within else "cannot_tell"
    effect = share(found.limit + shift.smallest_effect(strictest))
    judged = Judged(
        workload=case.workload,
        metric=case.metric,
        verdict=verdict,
        base=found.base,
        head=found.head,
        allow=case.allow,
        change=share(shift.estimate),
        low=share(shift.lower()),
        high=share(shift.upper()),
        noise=found.noise,
        smallest_effect=max(effect, noise),
        chance=chance,
    )
    return replace(judged, reason=_reason(judged))


def _too_small(found: Tested, shift: Shift) -> bool:
    """Whether even the far end of the difference is below what anybody minds."""
    least = found.case.ignore_below
    if not least:
        return False
    if not found.case.metric.log_scale():
        return shift.upper() * (1 / found.unit) <= least
    if found.case.metric.worse == "less":
        return False
    far = max(float(np.expm1(shift.upper())) * found.base, abs(found.head - found.base))
    return far <= least


def _too_few(found: Tested) -> Judged:
    """Few blocks tell nothing, unless what they differ by is below what anybody minds."""
    case, less = found.case, found.case.metric.worse == "less"
    small = not less and abs(found.head - found.base) <= case.ignore_below
    return Judged(
        workload=case.workload,
        metric=case.metric,
        verdict="pass" if small else "cannot_tell",
        base=found.base,
        head=found.head,
        allow=case.allow,
        noise=found.noise,
        reason=f"less than {case.metric.text(case.ignore_below)} apart"
        if small
        else "too few steps to know what they differ from themselves by; measure four blocks of "
        "three steps a side at least",
    )


def _reason(judged: Judged) -> str | None:
    if judged.verdict != "cannot_tell":
        return None
    noise, allow = judged.noise or 0.0, judged.allow or 0.0
    if noise > allow:
        own = f"the same code differs from itself by {share_text(noise)}"
        return f"{share_text(allow)} is tighter than the noise: {own}"
    return "the difference may lie on either side of the limit; measure more blocks"
