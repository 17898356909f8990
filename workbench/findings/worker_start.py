"""WB104: worker processes start anew at every epoch.

What: the time from the start of an epoch to its first batch, against the waits for later batches.
Why: started by spawn, a worker imports everything and receives the data set anew, and workers start
one after another; under fork it costs milliseconds.
What to do: DataLoader(persistent_workers=True) keeps them alive between epochs.
When it is wrong: where epochs are long the start does not matter, and the finding stays silent;
workers that live on keep their memory, and what they cached of the data set goes stale.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.findings.finding import Facts, Finding
from workbench.findings.input_wait import severity
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    from workbench.analysis.loader_evidence import EpochStart

CODE = "WB104"

TIMES_MEDIAN = 10
LEAST_SHARE = 0.05
"""As the design's list of findings has it: over 10 times the median wait, over 5 % of an epoch."""


def worker_start(facts: Facts) -> Finding | None:
    """Fires when starting workers takes more than 5 % of every epoch."""
    starts = [epoch for epoch in facts.epoch_starts if epoch.workers]
    if not starts or facts.effective.get("persistent_workers"):
        return None
    # The first start of a program also pays what is paid only once.
    counted = starts[1:] or starts
    start = statistics.median(epoch.start_wait_ns for epoch in counted)
    medians = [epoch.median_wait_ns for epoch in starts if epoch.median_wait_ns is not None]
    later = statistics.median(medians) if medians else None
    lost = max(start - (_made_ns(counted) if later is None else later), _longest_waits(facts))
    epoch = _epoch_ns(facts, lost)
    if epoch is None or start <= TIMES_MEDIAN * (later or 0) or lost <= LEAST_SHARE * epoch[0]:
        return None
    workers = "1 worker" if starts[0].workers == 1 else f"{count_text(starts[0].workers)} workers"
    each = "" if later is None else f"; later batches are waited for {time_text(later)} each"
    length, batches = epoch
    share = min(1.0, lost / length)
    saving, step = lost / batches, length / batches
    return Finding(
        code=CODE,
        title=f"Starting {workers} takes {time_text(lost)} of every epoch ({share_text(share)})"
        f"{each}.",
        verdict="yes",
        severity="info" if len(starts) < 2 else severity(share, len(facts.step_ns or ())),
        evidence={
            "start_us": start / 1000,
            "median_wait_us": None if later is None else later / 1000,
            "batches_per_epoch": batches,
            "epoch_us": length / 1000,
            "starts": len(starts),
            "workers": starts[0].workers,
        },
        advice="Keep the workers alive between epochs: DataLoader(persistent_workers=True).",
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=step / (step - saving) if step > saving else None,
        setting={"persistent_workers": True} if facts.effective.get("workers") else None,
        rank=facts.rank,
    )


def _made_ns(starts: Sequence[EpochStart]) -> float:
    """What making the first batch takes, where no later one tells how long it is waited for."""
    return statistics.median(epoch.batch_fetch_ns or 0.0 for epoch in starts)


def _longest_waits(facts: Facts) -> float:
    """What the first step of an epoch waits beyond others; 0 where no step of record was one.

    The workers of the epoch before are ended in it as well, which is no part of a start.
    """
    batches, waits = facts.effective.get("batches_per_epoch"), facts.input_ns or ()
    starts = len(waits) // batches if batches else 0
    if not starts:
        return 0.0
    longest = sorted(waits)[-starts:]
    return statistics.fmean(longest) - statistics.median(waits)


def _epoch_ns(facts: Facts, lost: float) -> tuple[float, int] | None:
    """Length of an epoch and its batches: as many as the loader says, else those that were seen."""
    batches = facts.effective.get("batches_per_epoch")
    if batches == 1 and facts.step_ns:  # every step starts anew
        return max(statistics.fmean(facts.step_ns), lost), 1
    if batches and facts.step_ns:
        steps = sorted(facts.step_ns)
        steady = statistics.median(steps[: len(steps) - len(steps) // batches])
        return batches * steady + lost, batches
    whole = [epoch for epoch in facts.epoch_starts if epoch.length_ns]
    if not whole:
        return None
    length = statistics.median(epoch.length_ns or 0 for epoch in whole)
    return float(length), int(statistics.median(epoch.batches for epoch in whole))
