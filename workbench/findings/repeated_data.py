"""WB109: workers give the same samples more than once.

What: samples of the first batches that come again from another worker in the same epoch; for two
Runs, how many samples an epoch has.
Why: each worker iterates the whole of an iterable data set, unless it divides itself: four workers
give every sample four times, an epoch is four times as long, and training sees something else.
What to do: divide the data in __iter__ by torch.utils.data.get_worker_info(); compare throughput
per batch or per sample, never per epoch.
When it is wrong: data that holds the same sample several times looks like it; data that is shuffled
over a long way repeats only later than was looked at.
"""

from workbench.findings.finding import Facts, Finding
from workbench.units import count_text, share_text, significant

CODE = "WB109"

LEAST_SHARE = 0.5
"""Own choice: of the share that workers reading everything repeat, (workers − 1) ÷ workers, at
least so much must be seen."""
COUNT_RATIO = 1.5
"""Own choice: epochs of two Runs that differ by less may drop or pad a batch."""


def repeated_data(facts: Facts) -> Finding | None:
    """Fires when samples come again from another worker before the epoch has ended."""
    found = (facts.input_checks or {}).get("repetition")
    workers = facts.effective.get("workers") or 0
    if not found or workers < 2 or not found["samples"]:
        return None
    share = found["repeated"] / found["samples"]
    if share < LEAST_SHARE * (workers - 1) / workers:
        return None
    kind = facts.effective.get("data_set") or "the iterable data set"
    return Finding(
        code=CODE,
        title=f"Data is duplicated: {share_text(share)} of the first "
        f"{count_text(found['samples'])} samples came before, because {workers} workers each read "
        f"all of {kind}.",
        verdict="yes",
        severity="critical",
        evidence={
            "samples": found["samples"],
            "repeated": found["repeated"],
            "workers": workers,
            "divides_itself": facts.effective.get("divides_itself"),
        },
        advice="Divide the data in __iter__ by torch.utils.data.get_worker_info(), or use one "
        "worker; until then compare per batch, never per epoch.",
        setting={"workers": 1},
        rank=facts.rank,
    )


def changed_count(first: Facts, second: Facts) -> Finding | None:
    """Fires when an epoch of the second Run has another number of samples than one of the first."""
    before, after = _per_epoch(first), _per_epoch(second)
    if before is None or after is None or not before or not after:
        return None
    if first.effective.get("data_set") != second.effective.get("data_set"):
        return None
    if max(before, after) < COUNT_RATIO * min(before, after):
        return None
    workers = [facts.effective.get("workers") for facts in (first, second)]
    return Finding(
        code=CODE,
        title=f"An epoch went from {significant(before)} samples to {significant(after)} "
        f"(workers {workers[0]} and {workers[1]}): compare per batch or sample, never per epoch.",
        verdict="yes",
        severity="warning",
        evidence={"samples_before": before, "samples_after": after},
        advice="If the data is the same, workers give it more than once: divide it by "
        "torch.utils.data.get_worker_info().",
        rank=second.rank,
    )


def _per_epoch(facts: Facts) -> float | None:
    batches = (facts.input_checks or {}).get("batches_in_epoch")
    samples = facts.effective.get("samples_per_step")
    return batches * float(samples) if batches and samples else None
