"""The charts of the loader's inside."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from workbench.pages.loader_charts import epochs_chart, lanes_chart, rate_chart, stalls_chart
from workbench.run.breakdowns import device_label

if TYPE_CHECKING:
    from workbench.pages.static import StaticFigure
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run


def stalls(_: Run, rank: RankAnalysis) -> StaticFigure:
    """What each step's exposed wait for data is spent on."""
    import numpy as np

    from workbench.analysis.stalls.parts import PART
    from workbench.run.stalls import stall_steps

    found, steps = rank.stalls, stall_steps(rank)
    if found is None:
        return stalls_chart(None, reason=f"{_reason(rank)}.")
    if steps is None:
        return stalls_chart(None, reason="the trace marks no complete step.")
    amounts = found.steps(len(steps.numbers))[:-1]
    parts = {
        name: None if found.by_part[name] is None else np.asarray(amounts[:, place], np.int64)
        for name, place in PART.items()
    }
    return stalls_chart(
        parts,
        numbers=steps.numbers,
        whole_ns=found.by_part,
        other_by=found.other_by,
        who=_who(rank),
    )


def lanes(run: Run, rank: RankAnalysis) -> StaticFigure:
    """Worker processes beside the gaps of the device, or the waits of the loop."""
    from workbench.analysis.stalls.lanes import lanes as find_lanes

    stalls = rank.stalls
    records = run.loader_records if stalls is not None and rank is run.ranks[0] else None
    if stalls is None or records is None:
        return lanes_chart(None, reason=f"{_reason(rank)}.")
    found = find_lanes(records, stalls)
    if found is None:
        return lanes_chart(None, reason="the loop never waited for a batch of this loader.")
    return lanes_chart(
        found.lanes,
        found.waits,
        links=found.links,
        start_ns=found.start,
        end_ns=found.end,
        shown=found.last - found.first + 1,
        of=found.of,
        who=_who(rank),
        fetching=stalls.fetching,
        workers=stalls.workers,
    )


def rate(run: Run, _: RankAnalysis) -> StaticFigure:
    """What the model could take against what the loader brings."""
    record = run.record
    timings = None if record is None else record.timings
    alone = None if record is None else record.loader_alone
    if record is None or timings is None or not timings.replay_ns or not alone:
        return rate_chart(None, None)
    samples, unit = record.samples_per_step, "samples/s"
    brings = alone["batches_per_s"]
    if samples is None:
        samples, unit = 1.0, "batches/s"
    else:
        brings = alone["samples_per_s"] or brings * samples
    steady = timings.step_ns[timings.warmup :]
    replayed = statistics.median(timings.replay_ns)
    return rate_chart(
        samples / replayed * 1e9 if replayed > 0 else None,
        brings,
        reached=samples / statistics.fmean(steady) * 1e9 if steady and sum(steady) else None,
        unit=unit,
        per_batch=samples,
    )


def epochs(run: Run, rank: RankAnalysis) -> StaticFigure:
    """What making a batch takes in the first epoch and in the later ones."""
    from workbench.analysis.stalls.epochs import epoch_times
    from workbench.figures.epochs import Epoch

    records = run.loader_records if rank is run.ranks[0] else None
    if records is None:
        return epochs_chart(None, reason=f"{_reason(rank)}.")
    found = [
        Epoch(
            number=each.number,
            batches=each.batches,
            made_ns=each.made_ns,
            parts_ns=each.parts_ns,
            storage_bytes=each.storage_bytes,
        )
        for each in epoch_times(records)
    ]
    return epochs_chart(found if len(found) > 1 else None)


def _who(rank: RankAnalysis) -> str:
    """The device in short: its lane has no room for more."""
    if not rank.device_indices:
        return "the loop"
    return device_label(rank, rank.device_indices[0]).partition(" (")[0]


def _reason(rank: RankAnalysis) -> str:
    return str(getattr(rank.split_of_input, "reason", "the inside of the loader was not recorded"))
