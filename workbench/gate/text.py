"""A gate as words and as a table for a terminal."""

from typing import TYPE_CHECKING

from workbench.units import share_text

if TYPE_CHECKING:
    from workbench.gate.gate import Gate
    from workbench.gate.judging import Judged

MARKS = {"pass": "✓", "fail": "✗", "cannot_tell": "≈"}
WORDS = {"pass": "pass", "fail": "FAIL", "cannot_tell": "cannot tell"}
HEAD = ("", "metric", "base", "head", "change", "allowed", "noise (A/A)", "smallest seen")
SHOWN = 0.0005


def sentence(gate: "Gate") -> str:
    """The verdict in one sentence."""
    failed = gate.failed
    if failed:
        worst = [f"{e.key} {change_text(e)}" for e in failed[:3]]
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        return f"✗ fail: {', '.join(worst)}{more}."
    if gate.refused:
        return (
            f"≈ could not measure: the baseline is of another machine ({'; '.join(gate.refused)}). "
            "Record it on this one, judge --counters-only, or measure both here: "
            "workbench gate --measure-both BASE_REVISION HEAD_REVISION --workload MODULE:FUNCTION."
        )
    if gate.common is not None:
        return (
            f"≈ cannot tell: all {gate.common.workloads} workloads moved together by "
            f"{gate.common.change:+.0%}, so the machine changed rather than each of them."
        )
    if not gate.measured:
        return "≈ could not measure: there is nothing that both sides hold."
    if gate.verdict == "cannot_tell":
        unknown = [e for e in gate.judged if e.verdict == "cannot_tell" and _counts(e)]
        said = "; ".join(f"{e.key}: {e.reason}" for e in unknown[:2])
        return f"≈ cannot tell: {said}."
    counted = sum(each.verdict == "pass" for each in gate.judged)
    return f"✓ pass: {counted} of {len(gate.judged)} metrics held, none became worse."


def _counts(judged: "Judged") -> bool:
    return judged.metric.leads or judged.limit is not None


def change_text(judged: "Judged") -> str:
    """How much worse, with its interval; of parts in shares of the step."""
    if judged.change is None:
        return "not known"
    of = " of the step" if judged.metric.kind == "parts" and judged.limit is None else ""
    said = f"{_told_as(judged, judged.change):+.1%}{of}".replace("%", " %")
    if judged.low is None or judged.high is None:
        return said
    ends = sorted(_told_as(judged, end) * 100 for end in (judged.low, judged.high))
    return f"{said} ({ends[0]:.1f} to {ends[1]:.1f})"


def _told_as(judged: "Judged", worse: float) -> float:
    """A rate that falls is told as it falls, not as how much longer everything takes."""
    if judged.metric.worse == "less" and judged.limit is None:
        return 1 / (1 + worse) - 1
    return worse


def row(judged: "Judged") -> tuple[str, ...]:
    """One metric as cells of text."""
    metric = judged.metric
    base = judged.base if judged.limit is None else judged.limit
    allowed = "limit" if judged.limit is not None else _share(judged.allow)
    return (
        f"{MARKS[judged.verdict]} {WORDS[judged.verdict]}",
        f"{judged.workload} {metric.title}".strip(),
        metric.text(base),
        metric.text(judged.head),
        change_text(judged),
        allowed,
        _share(judged.noise),
        _share(judged.smallest_effect),
    )


def _share(value: float | None) -> str:
    return "not known" if value is None else share_text(value)


def gate_text(gate: "Gate") -> str:
    """The sentence, a table of all that was judged, and the notes."""
    rows = [HEAD, *(row(each) for each in _ordered(gate))]
    widths = [max(len(cells[at]) for cells in rows) for at in range(len(HEAD))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) for cells in rows]
    told = [f"  {each.key}: {each.reason}" for each in _ordered(gate) if _told(each)]
    how = "in turns" if gate.interleaved else "one after the other"
    said = [
        f"base: {gate.base or 'none'} · head: {gate.head} · measured {how} · "
        f"at most {share_text(gate.level)} of gates over unchanged code fail (Holm over all tests)",
        *gate.notes,
    ]
    return "\n".join([gate.sentence, "", *(line.rstrip() for line in lines), *told, "", *said])


def _told(judged: "Judged") -> bool:
    return judged.reason is not None and judged.verdict == "cannot_tell"


def _ordered(gate: "Gate") -> list["Judged"]:
    """What failed first, then the rest as metrics are listed."""
    order = {"fail": 0, "cannot_tell": 1, "pass": 1}
    return sorted(gate.judged, key=lambda each: order[each.verdict])
