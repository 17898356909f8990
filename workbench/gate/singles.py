"""Verdicts on single numbers and on counts that are the same in every step."""

import statistics

import numpy as np

from workbench.gate.judging import Case, Judged, Verdict
from workbench.gate.sample import Sample

_OTHER_RUNS = (
    "the process of one side had measured more Runs before and may still have held their memory; "
    "measure each side in a process of its own"
)
MAD_TO_DEVIATION = 1.4826
MEDIAN_ERROR = 1.2533
"""A median scatters by so much more than a mean (normal values)."""


def judge_value(case: Case) -> Judged:
    """One number a Run: repeats tell its noise, else what such numbers are taken to differ by."""
    base, head = _middle(case.base), _middle(case.head)
    if base is None or head is None or case.base is None:
        return not_measured(case)
    noise = max(case.metric.assumed_noise, _spread(case.base), _spread(case.head))
    change = (head - base) / base if base else (0.0 if head == base else float("inf"))
    small = head - base <= case.ignore_below
    sure = change > case.allow + noise
    verdict: Verdict = (
        "pass" if small or change <= case.allow else "fail" if sure else "cannot_tell"
    )
    reason = None
    if verdict == "cannot_tell":
        reason = (
            f"single numbers of this kind differ by {noise:.0%} by themselves; give several Runs"
        )
    if abs(head - base) > max(case.ignore_below, case.allow * base) and _unlike(case):
        verdict, reason = "cannot_tell", _OTHER_RUNS
    return Judged(
        workload=case.workload,
        metric=case.metric,
        verdict=verdict,
        base=base,
        head=head,
        allow=case.allow,
        change=change if np.isfinite(change) else None,
        noise=noise,
        smallest_effect=case.allow + noise,
        reason=reason,
    )


def _unlike(case: Case) -> bool:
    """Whether one side's process may still have held what more Runs before it had left."""
    counts = [None if side is None else side.runs_before for side in (case.base, case.head)]
    return None not in counts and counts[0] != counts[1]


def judge_count(case: Case) -> Judged:
    """What every step does equally often may not become more, but for what steps differ by."""
    base, head = _middle(case.base), _middle(case.head)
    if base is None or head is None or case.base is None:
        return not_measured(case)
    own = max(_range(case.base), _range(case.head))
    most = base + max(case.allow * base, own, case.ignore_below)
    change = (head - base) / base if base else None
    noise = own / base if base else None
    return Judged(
        workload=case.workload,
        metric=case.metric,
        verdict="fail" if head > most else "pass",
        base=base,
        head=head,
        allow=case.allow,
        change=change,
        noise=noise,
        smallest_effect=(most - base) / base if base else None,
        reason=f"steps of one side differ by {case.metric.text(own)} from one another"
        if own
        else None,
    )


def judge_limit(case: Case) -> Judged:
    """The head alone against an absolute limit: its median, with what that scatters by.

    A single wild step moves neither the median nor the deviation, which is the median one.
    """
    limit = case.rule.at_most if case.rule.at_most is not None else case.rule.at_least
    assert limit is not None
    values = _of_steps(case)
    if not values.size or limit <= 0:
        return not_measured(case)
    head = float(np.median(values))
    sign = 1.0 if case.rule.at_most is not None else -1.0
    if head <= 0:
        over, error = (-np.inf if sign > 0 else np.inf), 0.0
    else:
        over = sign * float(np.log(head / limit))
        logs = np.log(np.maximum(values, head * 1e-3))
        deviation = MAD_TO_DEVIATION * float(np.median(np.abs(logs - np.log(head))))
        error = MEDIAN_ERROR * deviation / float(np.sqrt(values.size))
    single = case.metric.assumed_noise if case.metric.kind == "value" else 0.0
    margin = max(3.0 * error, float(np.log1p(single)))
    verdict: Verdict = "fail" if over > margin else "pass" if over <= -margin else "cannot_tell"
    if case.metric.kind == "count" or (single and over <= 0):
        verdict = "fail" if over > 0 else "pass"
    return Judged(
        workload=case.workload,
        metric=case.metric,
        verdict=verdict,
        base=None,
        head=head,
        limit=limit,
        change=float(np.expm1(over)) if np.isfinite(over) else None,
        noise=float(np.expm1(error)),
        smallest_effect=float(np.expm1(margin)),
        reason="the limit lies within what the steps scatter by; measure more steps"
        if verdict == "cannot_tell"
        else None,
    )


def not_measured(case: Case) -> Judged:
    """Nobody can judge what one side lacks."""
    reasons = [
        f"{name}: {side.reason or 'not measured'}"
        for name, side in (("base", case.base or Sample()), ("head", case.head))
        if not side.measured
    ]
    return Judged(
        workload=case.workload,
        metric=case.metric,
        verdict="cannot_tell",
        base=_middle(case.base),
        head=_middle(case.head),
        allow=case.allow,
        reason="; ".join(dict.fromkeys(reasons)) or "not measured",
    )


def _of_steps(case: Case) -> np.ndarray:
    """Numbers of the head: medians of its blocks, single steps where blocks are few, or values."""
    if case.metric.kind in ("times", "parts"):
        blocks = [block for block in case.head.blocks if block]
        if len(blocks) >= 4 and case.metric.kind == "times":
            return np.array([np.median(block) for block in blocks], np.float64)
        return np.array([value for block in blocks for value in block], np.float64)
    return np.array(case.head.values, np.float64)


def _middle(sample: Sample | None) -> float | None:
    if sample is None:
        return None
    values = sample.values or [value for block in sample.blocks for value in block]
    return float(statistics.median(values)) if values else None


def _spread(sample: Sample) -> float:
    middle = _middle(sample)
    if middle is None or not middle or len(sample.values) < 2:
        return 0.0
    return (max(sample.values) - min(sample.values)) / middle


def _range(sample: Sample) -> float:
    return max(sample.values) - min(sample.values) if sample.values else 0.0
