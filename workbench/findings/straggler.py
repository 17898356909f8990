"""WB402: the other ranks wait for this one.

What: the rank that waits least in collectives, when it waits clearly less than the median rank, and
the phase of a step in which it takes longer than the others.
Why: a collective ends when its last rank has come, so one slow rank sets the pace of all; in a
profile of any other rank this looks like slow communication.
What to do: look at the named phase and at that rank's own findings, where it has any: its input,
its host code, its processor cores, or a device that runs slower than the others.
When it is wrong: ranks that take turns being late have no single straggler; and ranks whose traces
are missing cannot be seen.
"""

from collections.abc import Iterable
from dataclasses import replace

from workbench.findings.finding import Facts, Finding, Severity, StragglerFacts
from workbench.units import share_text, time_text

CODE = "WB402"

NOTE_SHARE = 0.05
"""A straggler by definition: 5 % of the step time."""
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""Both as TraceML documents them."""
LEAST_STEPS_WARNING = 2
LEAST_STEPS_CRITICAL = 20
NAMED_FROM = 0.80
"""Share of the deficit that a phase must cover to be named as its cause (TraceML)."""

_ABOUT = ("WB1", "WB2", "WB3")
"""Findings about a rank itself; neither about communication nor about the measurement."""

_OF_PHASE = {"input": "WB1", "host": "WB2", "compute": "WB3", "compilation": "WB2"}
"""The findings that are about a phase."""

_WORDS = {
    "input": "waiting for data",
    "host": "host code",
    "compute": "compute on the device",
    "copies": "copies",
    "synchronization": "synchronization",
    "allocation": "memory allocation",
    "compilation": "compilation",
    "kernel_loading": "loading kernels",
    "garbage_collection": "garbage collection",
}


def straggler(facts: Facts) -> Finding | None:
    """Fires on the one rank that the others wait for, by more than 5 % of a step."""
    late = facts.straggler
    if late is None or late.step_ns <= 0:
        return None
    if late.wait_deficit_ns_per_step / late.step_ns <= NOTE_SHARE:
        return None
    waited = _waited(late)
    share = waited / late.step_ns
    lost = min(waited, late.step_ns)
    rest = late.step_ns - lost
    whole = "each step" if late.steps else "the recording"
    name = "One rank" if facts.rank is None else f"Rank {facts.rank}"
    reason, advice = _reason(late)
    return Finding(
        code=CODE,
        title=f"{name} is a straggler: the others wait {time_text(lost)} "
        f"({share_text(min(share, 1.0))}) of {whole} for it under the profiler{reason}.",
        verdict="yes",
        severity=_severity(share, late),
        evidence={
            "others_wait_us_per_step": _waited(late) / 1000,
            "wait_deficit_us_per_step": late.wait_deficit_ns_per_step / 1000,
            "step_us": late.step_ns / 1000,
            "steps": late.steps,
            "ranks": late.ranks,
            "phase": late.phase,
            "phase_excess_us_per_step": None
            if late.excess_ns_per_step is None
            else late.excess_ns_per_step / 1000,
        },
        advice=advice,
        share_of_window=min(share, 1.0),
        saving_ns_per_step_at_most=lost if late.steps else None,
        speedup_at_most=late.step_ns / rest if late.steps and rest > 0 else None,
        rank=facts.rank,
    )


def _waited(late: StragglerFacts) -> float:
    """What ends with the delay: of two ranks the deficit is half of what the other one waits."""
    return late.others_wait_ns_per_step or late.wait_deficit_ns_per_step


def _severity(share: float, late: StragglerFacts) -> Severity:
    if share >= CRITICAL_SHARE and (late.steps or 0) >= LEAST_STEPS_CRITICAL:
        return "critical"
    enough = (late.steps or 0) >= LEAST_STEPS_WARNING
    return "warning" if share >= WARNING_SHARE and enough else "info"


def _reason(late: StragglerFacts) -> tuple[str, str]:
    """Where it loses the time, and what to look at; no cause is named that explains too little."""
    excess = late.excess_ns_per_step or 0.0
    if late.phase is None or excess < NAMED_FROM * late.wait_deficit_ns_per_step:
        return "", (
            "Compare this rank's breakdown with the others (run.imbalance): no single phase "
            "explains its delay."
        )
    words = _WORDS.get(late.phase, late.phase.replace("_", " "))
    longer = time_text(excess) + (" a step" if late.steps else "")
    return (
        f", which comes from its {words}",
        f"This rank's {words} takes {longer} longer than on the other ranks: look at what else "
        "runs on its machine.",
    )


def with_own(finding: Finding, found: Iterable[Finding]) -> Finding:
    """A straggler's finding that points at what else was found about this rank, if anything.

    The switch that answers a finding about its late phase answers this one.
    """
    own = [f for f in found if f.verdict == "yes" and f.code[:3] in _ABOUT]
    if not own:
        return finding
    codes = ", ".join(dict.fromkeys(f.code for f in own))
    about = _OF_PHASE.get(str(finding.evidence.get("phase")))
    answers = (f.setting for f in own if f.setting and f.code[:3] == about)
    return replace(
        finding,
        advice=f"{finding.advice} Its own findings: {codes}.",
        setting=next(answers, None),
    )
