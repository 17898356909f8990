"""A Run in one sentence: what limits it, where its time goes, or why nobody can tell."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from workbench.figures import names
from workbench.figures.breakdown import headline, is_host
from workbench.figures.palette import category
from workbench.run.breakdowns import breakdowns, device_name, whose
from workbench.units import share_text, time_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workbench.findings import Finding
    from workbench.pages.view import Breakdown
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run

APART = 0.05
"""Shares and step times of ranks that differ by less are told as one."""
LEADING = 0.3
"""Share of the operators' time from which the longest is named in the verdict."""
NO_LIMIT = ("WB9", "WB206")
"""Findings about the measurement, and about what happened once before the steps."""
WORTH_NAMING = 0.1
MOST_FAMILIES = 3
"""Where none leads: the families of operators that are named instead, and from which share on."""


def verdict(run: Run) -> str:
    """The Run in one sentence: what limits it, or why nobody can tell.

    A note limits nothing: where there are only notes, it is said where the time goes.
    """
    if run.ranks[0].snapshot is not None:
        from workbench.run.memory import sentence

        return sentence(run.ranks[0], silent=not run.findings)
    found = grave(run)
    step = step_sentence(run)
    if found:
        return f"{_of_whom(run, found[0])}{found[0].title} {step}".strip()
    if not all(rank.trust.ok for rank in run.ranks):
        said = "Cannot tell what limits this program: its profile fails its own checks."
    else:
        said = _where_it_goes(run) or (
            "Cannot tell what limits this program: nothing of a training step was recorded."
        )
    return f"{said} {step}".strip()


def _of_whom(run: Run, finding: Finding) -> str:
    """Rank and device that a finding is about, where there are several and its title names none."""
    rank = rank_of(run, finding)
    if rank is None:
        return ""
    said = []
    if len(run.ranks) > 1 and not finding.title.startswith(f"Rank {finding.rank}"):
        said.append(f"Rank {finding.rank}")
    if finding.device in rank.device_time and len(rank.device_time) > 1:
        said.append(device_name(rank, finding.device))
    return f"{', '.join(said)}: " if said else ""


def rank_of(run: Run, finding: Finding) -> RankAnalysis | None:
    """The rank that a finding is about; the only one also where it names none."""
    if len(run.ranks) == 1:
        return run.ranks[0]
    named = finding.rank is not None
    return next((each for each in run.ranks if named and each.rank == finding.rank), None)


def foremost(run: Run) -> tuple[RankAnalysis, int | None]:
    """The rank and device of which the verdict speaks, so that what stands below it is of them.

    The device is ``None`` where it names none.
    """
    found = grave(run)
    if not found:
        return run.ranks[0], None
    rank = rank_of(run, found[0]) or run.rank(run.worst_rank)
    return rank, found[0].device if found[0].device in rank.device_time else None


def limiting(run: Run) -> list[Finding]:
    """The findings about the program, worst first.

    Those about the measurement and about the time before the steps are left out, and what was ruled
    out limits nothing.
    """
    return [
        finding
        for finding in run.findings
        if not finding.code.startswith(NO_LIMIT) and finding.verdict != "no"
    ]


def grave(run: Run) -> list[Finding]:
    """The findings about the program that are more than notes."""
    return [finding for finding in limiting(run) if finding.severity != "info"]


def _where_it_goes(run: Run) -> str | None:
    """The largest part in words; that no rule fires is no proof that nothing can be gained."""
    shown = [parts for rank in run.ranks for parts in breakdowns(rank, whose(run, rank))[:1]]
    shown = [parts for parts in shown if any(parts.parts_ns.values()) and parts.total_ns > 0]
    if not shown:
        return None
    first, several = shown[0], len(shown) > 1
    measured: dict[str, int] = {}
    for parts in shown:
        for name, ns in parts.parts_ns.items():
            if ns is not None:
                measured[name] = measured.get(name, 0) + ns
    total = sum(parts.total_ns for parts in shown)
    doubts = {parts.doubt for parts in shown}
    worst = next((each for each in ("times", "causes") if each in doubts), None)
    label = f"the mean device of {len(shown)} ranks" if several else first.label
    whole = "step" if all(parts.steps for parts in shown) else "window"
    said = headline(measured, total, label, whole, worst)
    if several and is_host(measured):
        said = f"on the mean of {len(shown)} ranks, {said}"
    if several and worst != "times":
        said += _spread(shown, measured)
    if not several and is_host(measured):
        said += _operators(run)
    elif not several and worst is None:
        said += _unknown(run.ranks[0])
    return f"{said[0].upper()}{said[1:]}. {_silence(run)}"


def _unknown(rank: RankAnalysis) -> str:
    """Where idle time of unknown cause lies, where it is much of the first device's window."""
    from workbench.analysis.unknown_time import unknown_time

    device, time = next(iter(rank.device_time.items()))
    share = (rank.idle_causes[device]["unknown"] or 0) / max(time.range.length, 1)
    if share < WORTH_NAMING:
        return ""
    found = unknown_time(rank.idle[device])
    parts = (
        (found.after, "behind its last recorded work"),
        (found.unrecorded, "while it did what the trace does not hold"),
        (found.unlaunched, "before work whose launch was not recorded"),
    )
    told = " and ".join(f"{time_text(ns)} {where}" for ns, where in parts if ns > 0)
    return f"; idle time of unknown cause: {told}"


def _operators(run: Run) -> str:
    """What takes the operators' time on the host: one operator that leads, else the families."""
    from workbench.analysis.operator_families import OTHER

    more = run.ranks[0].details
    table, families = more.operator_times, more.operator_families
    if table is None or families is None or not (whole := table["host_self_ns"].sum()):
        return ""
    first = table.iloc[0]
    if (share := float(first["host_self_ns"] / whole)) >= LEADING:
        longest = names.shorten(str(first["name"]), 40)
        return f"; {longest} takes {share_text(share)} of the operators' time"
    known = families[families["family"] != OTHER]
    most = known[known["share"] >= WORTH_NAMING].head(MOST_FAMILIES)
    pairs = zip(most["family"], most["share"], strict=True)
    named = [f"{family} {share_text(part)}" for family, part in pairs]
    return f"; of the operators' time {', '.join(named)}" if named else ""


def _silence(run: Run) -> str:
    """Why nothing more is said: no rule fires, or few can without steps."""
    if found := limiting(run):
        if all(finding.verdict == "cannot_tell" for finding in found):
            return "What is found leaves open whether it limits it."
        return "What is found are notes: small, or of too few steps to be sure."
    if run.findings:
        return "No rule of this version says what limits it."
    if any(rank.steps is not None for rank in run.ranks):
        return "No rule of this version fires on it."
    return "No rule fires on it: most of them judge steps, and the trace marks none."


def _spread(shown: Sequence[Breakdown], measured: Mapping[str, int]) -> str:
    """How far the ranks are apart in the largest part, where that is far."""
    largest = max(measured, key=lambda name: measured[name])
    shares = [(parts.parts_ns.get(largest) or 0) / parts.total_ns for parts in shown]
    if max(shares) - min(shares) < APART:
        return ""
    what = category(largest).label
    return f" ({what} from {share_text(min(shares))} to {share_text(max(shares))})"


def step_sentence(run: Run) -> str:
    """How long a step takes: of record, else under the profiler and said so; else empty."""
    timings = None if run.record is None else run.record.timings
    if timings is not None and timings.step_ns[timings.warmup :]:
        steady = timings.step_ns[timings.warmup :]
        median, mean = statistics.median(steady), statistics.fmean(steady)
        apart = f" ({time_text(mean)} on average)" if abs(mean - median) >= APART * median else ""
        said = f"A step takes {time_text(median)} without the profiler, median of {len(steady)}"
        return f"{said}{apart}."
    found = [rank.steps for rank in run.ranks if rank.steps is not None]
    times = [steps.time_ns[steps.warmup :].tolist() for steps in found]
    medians = [statistics.median(each) for each in times if each]
    if not medians:
        return ""
    middle = statistics.median(medians)
    said = f"Under the profiler a step takes {time_text(middle)} (median{_pause(times)})"
    if max(medians) - min(medians) >= APART * statistics.median(medians):
        said += f", from {time_text(min(medians))} to {time_text(max(medians))} by rank"
    return f"{said}."


def _pause(times: Sequence[Sequence[int]]) -> str:
    """Of one rank: the mean and the longest step, where that is far above the median."""
    from workbench.analysis.steady import PAUSE

    if len(times) != 1:
        return ""
    median, mean, most = statistics.median(times[0]), statistics.fmean(times[0]), max(times[0])
    if mean - median < APART * median or most < PAUSE * median:
        return ""
    return f"; {time_text(mean)} on average, since one takes {time_text(most)}"
