"""Keep a change, revert it, or drop it; with the reason in words."""

from typing import Any

from workbench.figures.comparison import interval_text
from workbench.settings import Settings
from workbench.tuning.attempt import Attempt, Decision
from workbench.tuning.candidates import Candidate
from workbench.tuning.duel import Duel, step_interval
from workbench.tuning.look import input_share, known_facts, last_loss, memory_bytes
from workbench.tuning.parity import Parity
from workbench.tuning.trial import Outcome, Trial


def decided(candidate: Candidate, base: Settings, duel: Duel, numbers: Parity | None) -> Attempt:
    """What a duel says about a change.

    Args:
        candidate: The change, and why it was tried.
        base: The best so far.
        duel: What was measured.
        numbers: Whether it computes the same; asked only where it is faster.
    """
    before, after = duel.sides
    decision, reason = _verdict(duel, after, numbers)
    ratio, low, high = duel.change.ratio, duel.change.low, duel.change.high
    if after.blocks and before.blocks and low is None:
        ratio, low, high = step_interval(duel.runs) or (ratio, low, high)
    return Attempt(
        change=candidate.change,
        base=base,
        origin=candidate.origin,
        outcome=after.outcome,
        decision=decision,
        reason=reason,
        per=duel.runs.per(0, 1),
        ratio=ratio,
        low=low,
        high=high,
        base_step_ns=before.step_ns,
        base_sample_ns=before.sample_ns,
        parity=numbers,
        break_even_steps=duel.runs.break_even_steps(0, 1) if (ratio or 1.0) < 1 else None,
        blocks=len(after.blocks),
        seconds=round(duel.seconds, 3),
        notes=_notes(candidate.change, after),
        **_measured(after),
    )


def refused(candidate: Candidate, base: Settings, why: str, *, outcome: Outcome) -> Attempt:
    """A change that was not tried, and why."""
    return Attempt(
        change=candidate.change,
        base=base,
        origin=candidate.origin,
        outcome=outcome,
        decision="not tried",
        reason=why.rstrip("."),
    )


def unfinished(candidate: Candidate, base: Settings, stop: BaseException) -> Attempt:
    """A change whose trial came to no end."""
    why = "it was interrupted" if isinstance(stop, KeyboardInterrupt) else "the budget was over"
    return refused(candidate, base, f"{why} before it was decided", outcome="not_measured")


def _measured(after: Trial) -> dict[str, Any]:
    return {
        "step_ns": after.step_ns,
        "sample_ns": after.sample_ns,
        "memory_bytes": memory_bytes(after),
        "device_bytes": after.device_peak_bytes,
        "loss": last_loss(after),
        "compile_s": after.compile_s,
        "facts": {
            "effective": known_facts(after.effective),
            "input_share": input_share(after),
        },
    }


def _notes(change: Settings, after: Trial) -> tuple[str, ...]:
    """What a person must know of a change: of the learning rate, of graph breaks."""
    words = ["learning rate"] if change.batch_size is not None else []
    words += ["torch.compile"] if change.compile else []
    words += ["optimizer steps in"] if change.precision == "fp16" else []
    words += ["never called"]
    return tuple(note for note in after.notes if any(word in note for word in words))


def _verdict(duel: Duel, after: Trial, numbers: Parity | None) -> tuple[Decision, str]:
    if duel.ended == "failed" or not after.blocks:
        return "reverted", _failure(duel.sides[0], after)
    if duel.ended == "time_limit":
        return "reverted", "it took longer than its part of the budget"
    if duel.ended == "dropped":
        pairs = len(after.blocks)
        first = "the first pair of blocks" if pairs == 1 else f"{pairs} pairs of blocks"
        return "dropped", f"{first} showed no gain"
    took, verdict = _took(duel), duel.change.verdict
    if verdict != "faster":
        return "reverted", took if verdict == "slower" else f"within the noise, {took}"
    if numbers is not None and numbers.ok:
        return "kept", f"{took}; its numbers are as expected"
    return "reverted", f"{took}, {_doubt(numbers)}"


def _took(duel: Duel) -> str:
    change = duel.change
    if change.ratio is None or change.low is None or change.high is None:
        return "nothing could be compared"
    return f"{interval_text(change.ratio, change.low, change.high)} time a {duel.runs.per(0, 1)}"


def _doubt(numbers: Parity | None) -> str:
    if numbers is None:
        return "but nobody compared its numbers"
    words = {"differs": "its numbers differ", "diverges": "its training diverges"}
    what = words.get(numbers.verdict, "nobody can tell its numbers")
    return f"but {what}: {numbers.reason.rstrip('.')}"


def _failure(before: Trial, after: Trial) -> str:
    if not before.ok and before.outcome not in {"measured", "not_measured"}:
        return f"the loop failed without it: {before.reason}"
    words = {
        "out_of_memory": "out of memory; everything was put back",
        "refused": f"it cannot act here: {after.reason}",
        "error": f"it fails: {after.reason}",
        "timed_out": f"it hung or was too slow: {_short(after.reason)}",
    }
    return words.get(after.outcome, "it was not measured").rstrip(".")


def _short(reason: str | None) -> str:
    """What was cancelled, without what to do where a person has called it."""
    return (reason or "").partition(" and was cancelled")[0]
