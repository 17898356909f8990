"""WB212: steps grow longer during the run, or every so many of them is slow.

What: a trend of the step times of record, or slow steps at a fixed distance. Where the wait for
input was measured, each step is looked at without it: W workers deliver in bursts of W batches, and
that wait is told as such.
Why: something piles up (histories, histograms, queues of uploads), or a callback runs every so many
steps; a mean hides both.
What to do: look at what runs at that distance (logging, checkpoints, telemetry) and at what it
keeps; do it less often, or in another thread. A profile of as many steps with
Record(stacks=True) names the line.
When it is wrong: inputs that grow by design (a curriculum, longer sequences) and a processor that
gets hot show the same trend.
"""

from dataclasses import replace
from typing import Any

from workbench.findings.finding import Facts, Finding, Severity
from workbench.statistics.drift import Drift, Period, drift, period
from workbench.units import share_text, time_text

CODE = "WB212"

NOTE_GROWTH = 0.10
"""Own choice: growth over the measured steps that no noise explains."""
WARNING_GROWTH = 0.25
NOTE_SHARE = 0.02
"""Own choice: what slow steps cost on average; noise hides less."""
WARNING_SHARE = 0.10
"""As for waiting (TraceML)."""
MOST_STEPS = 2000
"""A trend is told from so many steps, evenly chosen; more take memory and tell no more."""


def step_drift(facts: Facts) -> Finding | None:
    """Fires on a growing or periodic step time, measured without the profiler."""
    if not facts.step_ns:
        return None
    worked = _without_input(facts.step_ns, facts.input_ns)
    mean = sum(facts.step_ns) / len(facts.step_ns)
    grown = _growth(worked, mean)
    regular = period(worked, facts.block_steps)
    if regular is not None and regular.excess_ns <= NOTE_SHARE * mean:
        regular = None
    if grown is None and regular is None:
        return None
    return _finding(facts, grown, regular, mean)


def _without_input(steps: tuple[int, ...], waits: tuple[int, ...] | None) -> tuple[int, ...]:
    """Step times less their wait for input; as they are where that was not measured."""
    if waits is None or len(waits) != len(steps):
        return steps
    return tuple(max(0, step - wait) for step, wait in zip(steps, waits, strict=True))


def _growth(worked: tuple[int, ...], mean: float) -> Drift | None:
    """A trend that matters to whole steps, of which ``mean`` is the mean with the wait."""
    stride = max(1, len(worked) // MOST_STEPS)
    grown = drift(worked[::stride])
    if grown is None:
        return None
    part = sum(worked) / len(worked) / mean
    grown = replace(grown, slope_ns=grown.slope_ns / stride, growth=grown.growth * part)
    return grown if grown.growth > NOTE_GROWTH else None


def _finding(facts: Facts, grown: Drift | None, regular: Period | None, mean: float) -> Finding:
    said, severity = [], "info"
    share = None
    if grown is not None:
        said.append(f"steps grow longer by {share_text(grown.growth)} during the measurement")
        severity = "warning" if grown.growth > WARNING_GROWTH else severity
    if regular is not None:
        share = min(1.0, regular.excess_ns / mean)
        said.append(
            f"every {regular.steps} steps one is slow, which costs {time_text(regular.excess_ns)} "
            f"a step on average ({share_text(share)})"
        )
        severity = "warning" if share > WARNING_SHARE else severity
    title = " and ".join(said)
    graded: Severity = "warning" if severity == "warning" else "info"
    saving = None if regular is None else min(regular.excess_ns, mean)
    return Finding(
        code=CODE,
        title=f"{title[0].upper()}{title[1:]}.",
        verdict="yes",
        severity=graded,
        evidence=_evidence(facts, grown, regular),
        advice=_advice(facts, regular),
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=mean / (mean - saving) if saving is not None and saving < mean else None,
        rank=facts.rank,
    )


def _evidence(facts: Facts, grown: Drift | None, regular: Period | None) -> dict[str, Any]:
    """What of the two fired; the other was measured and is nothing to tell."""
    found: dict[str, Any] = {}
    if grown is not None:
        found |= {"growth_us_per_step": grown.slope_ns / 1000, "growth_share": grown.growth}
    if regular is not None:
        found |= {"period_steps": regular.steps, "slow_steps": regular.spikes}
    if facts.slow_line is not None:
        slow = facts.slow_line
        found |= {"slow_line": slow.line, "slow_line_us": slow.excess_ns / 1000}
    return found | {
        "steps": len(facts.step_ns or ()),
        "input_wait": "within the steps" if facts.input_ns is None else "left out",
        "source": "measured without the profiler",
    }


def _advice(facts: Facts, regular: Period | None) -> str:
    slow = facts.slow_line
    if slow is not None:
        return (
            f"In the slowest profiled step {slow.line} takes {time_text(slow.excess_ns)} more than "
            "usual: look at what it keeps and sends, and do it less often, or in another thread."
        )
    if regular is None:
        return (
            "Look for what piles up from step to step: a list of losses or outputs that is kept, a "
            "histogram over all of it, a queue of uploads. Record(stacks=True) names the line."
        )
    return (
        f"Look for what runs every {regular.steps} steps (logging, checkpoints, telemetry) and do "
        "it less often, or in another thread. A profile of as many steps with Record(stacks=True) "
        "names the line."
    )
