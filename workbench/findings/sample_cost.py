"""WB102: loading is per-sample Python or collating, not storage.

What: of the wait for data, the part that making samples (decoding, transforms) and collating them
take on a processor, while hardly anything is read.
Why: a call per sample and a stack per batch cost microseconds each, times the batch size; rows of
a table in memory are slower to hand over from a worker than to fetch.
What to do: fetch whole batches with one index call (give the dataset a __getitems__ method); stack
arrays before making a tensor of them; decode smaller, cache, or transform on the device in batches.
When it is wrong: where the device keeps busy anyway nothing is gained, and moving transforms to a
device that is the bottleneck makes the step slower; the processor time of a library's own threads
is not seen.
"""

from typing import Any

from workbench.findings.finding import Facts, Finding
from workbench.findings.input_wait import NOTE_SHARE, samples_per_step
from workbench.findings.loader_advice import BATCHED, READ_SHARE, row_by_row, whole_batches
from workbench.findings.stalled import Stalled, stalled
from workbench.findings.switching import batched_fetch
from workbench.units import share_text, time_text

CODE = "WB102"

BUSY_SHARE = 0.6
"""Own choice for "CPU time is about wall time": below it, loading mostly waits for something."""
ROUNDING = 0.02
"""Means of a batch and of a wait that differ by less are one."""
SLOW_TENSOR = "list of numpy.ndarrays is extremely slow"
"""From torch's own warning about torch.tensor([array, array, …])."""


def sample_cost(facts: Facts) -> Finding | None:
    """Fires when at least half of the wait is work on samples, and little of it reading."""
    found, stages = stalled(facts), facts.loader_stages
    if found is None or stages is None:
        return None
    rows = row_by_row(facts)
    if not rows:
        if (stages.read_share or 0) >= READ_SHARE:
            return None
        if stages.cpu_share < BUSY_SHARE or whole_batches(facts):
            return None
    names = (*_WORK, "transfer", "starvation", "blocked", "other") if rows else _WORK
    if not found.leads(*names) or _quick(facts, found):
        return None
    return _finding(facts, found, names, rows=rows)


_WORK = ("decode", "collate")


def _quick(facts: Facts, found: Stalled) -> bool:
    """Whether the training process makes its usual batch in next to no time.

    A few steps that something else held up make a mean wait, and no sample of theirs is to blame.
    """
    stages = facts.loader_stages
    if stages is None or found.workers:
        return False
    samples, each = samples_per_step(facts), stages.samples
    batches = samples * stages.batches / each if samples and each else 1.0
    return stages.batch_ns * max(batches, 1.0) <= NOTE_SHARE * found.wait.step_ns


def _finding(facts: Facts, found: Stalled, names: tuple[str, ...], *, rows: bool) -> Finding:
    stages = facts.loader_stages
    assert stages is not None
    collating = stages.collate_ns > stages.samples_ns
    per_batch = stages.batch_ns
    each = "" if stages.sample_ns is None else f"{time_text(stages.sample_ns)} a sample, "
    what = "collating batches" if collating else "Python for every single sample"
    if not rows and not collating:
        what = "decoding and transforming samples"
    share, saving = found.share_of_step(*names), found.saving_ns(*names)
    warned = _warned(facts)
    return Finding(
        code=CODE,
        title=f"Loading is {what}, not storage: {each}{time_text(per_batch)} a batch; "
        f"{_of_a_step(found, share)}.",
        verdict="yes",
        severity=found.severity(saving),
        evidence={
            "sample_us": None if stages.sample_ns is None else stages.sample_ns / 1000,
            "batch_us": per_batch / 1000,
            "collate_share": stages.collate_ns / stages.fetch_ns if stages.fetch_ns else None,
            "cpu_share": stages.cpu_share,
            "read_share": stages.read_share,
            "samples_per_call": stages.samples_per_call,
            "workers": facts.effective.get("workers"),
            **({} if warned is None else {"warning": warned}),
        },
        advice=_advice(facts, rows=rows, collating=collating)
        + _more_than_a_batch(found, saving, per_batch),
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=found.speedup(*names),
        setting=batched_fetch(facts) if rows else None,
        rank=facts.rank,
        device=found.wait.device,
    )


def _of_a_step(found: Stalled, share: float) -> str:
    """What it takes of a step, and beside it what the loader waits for a processor to do it."""
    waited = found.share_of_step("oversubscription")
    if waited <= NOTE_SHARE:
        return f"it takes {share_text(share)} of each step"
    return (
        f"each step waits {share_text(share)} for it, and {share_text(waited)} for a processor "
        "that is free to do it"
    )


def _more_than_a_batch(found: Stalled, saving_ns: float, batch_ns: float) -> str:
    """Why the bound is above the time that was seen to make a batch, where it is."""
    if found.workers or saving_ns <= (1 + ROUNDING) * batch_ns:
        return ""
    return (
        f" The gain is above the {time_text(batch_ns)} of a batch, because a step waits "
        f"{time_text(found.wait.per_step_ns)} on average, with all that goes beside making it."
    )


def _warned(facts: Facts) -> Any:
    return next((text for text in facts.warnings if SLOW_TENSOR in text), None)


def _advice(facts: Facts, *, rows: bool, collating: bool) -> str:
    if _warned(facts) is not None:
        return (
            "A tensor is made from a list of arrays, which reads it element by element (torch "
            "itself warns of it): torch.from_numpy(numpy.stack(arrays))."
        )
    if rows and collating:
        return f"{BATCHED} It also leaves nothing to collate."
    if rows:
        return BATCHED
    if collating:
        return (
            "Make the collate function cheaper: stack arrays first (numpy.stack, then "
            "torch.from_numpy), pad once per batch, build no Python lists of numbers."
        )
    return (
        "Make samples cheaper: decode at the size that is needed, use a faster decoder, cache what "
        "does not change, or transform whole batches on the device if it is not the bottleneck."
    )
