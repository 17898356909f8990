"""Reports of slow loading from practice: workers that start anew at every epoch (D02).

Small real loaders where the cause can be made here, facts written by hand where it needs a machine
that is not here. Costs are far from the thresholds, so that a busy machine changes no verdict.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from tests.findings.facts import MS, codes, found, stages, waiting
from tests.findings.loading import (
    Working,
    profiled,
    start_slowly,
)
from tests.findings.loops import fired, of
from workbench.analysis.loader_evidence import EpochStart
from workbench.findings.finding import Facts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


def test_d02_workers_that_start_slowly_at_every_epoch_are_kept_alive(tmp_path: Path) -> None:
    """300 ms to start, then 10 batches of milliseconds."""
    data = Working(count=40)
    loader = DataLoader(data, 4, num_workers=1, worker_init_fn=start_slowly)
    finding = fired(profiled(loader, tmp_path, step_s=0.002), "WB104")
    assert finding.setting == {"persistent_workers": True}
    assert finding.evidence["start_us"] >= 300_000
    assert finding.saving_ns_per_step_at_most is not None
    assert finding.saving_ns_per_step_at_most >= 25 * MS  # of each of ten steps


def test_d02_workers_that_live_on_are_silent(tmp_path: Path) -> None:
    options: dict[str, Any] = {"worker_init_fn": start_slowly, "persistent_workers": True}
    loader = DataLoader(Working(count=40), 4, num_workers=1, **options)
    assert of(profiled(loader, tmp_path, step_s=0.002), "WB104") is None


def start(ms: float) -> EpochStart:
    return EpochStart(
        start_wait_ns=int(ms * MS),
        median_wait_ns=MS / 10,
        batches=50,
        length_ns=None,
        batch_fetch_ns=None,
        storage_bytes=None,
        workers=8,
    )


def test_d02_an_epoch_that_was_not_seen_to_its_end_counts_by_its_length() -> None:
    """10 s to start and 315 steps of 100 ms: 10 of 41.5 s, 31.7 ms of each step."""
    facts = waiting(100, 0.1, epoch_starts=(start(10_000),), effective={"batches_per_epoch": 315})
    finding = found(facts, "WB104")
    assert finding is not None
    assert finding.share_of_window == pytest.approx(10 / 41.5, rel=0.01)
    assert finding.saving_ns_per_step_at_most == pytest.approx(31.7 * MS, rel=0.01)


def test_d02_ending_the_workers_of_the_epoch_before_is_saved_as_well() -> None:
    """A start takes 100 ms, and yet the first step of an epoch waits 150: 50 for the old workers.

    Two epochs of ten batches were timed: 15 ms of each step.
    """
    facts = waiting(20, 1, epoch_starts=(start(100),), effective={"batches_per_epoch": 10})
    waits = tuple((151 if number % 10 == 0 else 1) * MS for number in range(20))
    finding = found(replace(facts, input_ns=waits), "WB104")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(15 * MS)


def test_d02_under_fork_or_in_long_epochs_the_start_does_not_matter() -> None:
    """50 ms of 31.5 s; and 10 s of an hour."""
    fork = waiting(100, 0.1, epoch_starts=(start(50),), effective={"batches_per_epoch": 315})
    long = waiting(100, 0.1, epoch_starts=(start(10_000),), effective={"batches_per_epoch": 36_000})
    assert "WB104" not in codes(fork) | codes(long)


def restarting(batches: int, first_ms: float, later_ms: float, **rest: Any) -> Facts:
    """Twenty steps that compute for 5 ms; every epoch's first one waits ``first_ms``."""
    waits = [first_ms if number % batches == 0 else later_ms for number in range(20)]
    epoch = EpochStart(
        start_wait_ns=int(first_ms * MS),
        median_wait_ns=later_ms * MS if batches > 1 else None,
        batches=batches,
        length_ns=None,
        batch_fetch_ns=20.0 * MS,
        storage_bytes=None,
        workers=2,
    )
    facts = waiting(
        0,
        0,
        epoch_starts=(epoch,) * 3,
        effective={"batches_per_epoch": batches, "workers": 2},
        loader_stages=stages(batch_ns=20.0 * MS, fetch_ns=200 * MS, fetch_cpu_ns=200 * MS),
        stalls_ns={"startup": 0, "transfer": 8, "decode": 2},
        **rest,
    )
    timed = [int(wait * MS) for wait in waits]
    return replace(facts, input_ns=tuple(timed), step_ns=tuple(wait + 5 * MS for wait in timed))


def test_d02_a_wait_that_is_mostly_workers_starting_says_so_and_asks_for_no_more_of_them() -> None:
    """Epochs of 10 batches: 520 ms for the first, of which 20 make it, then 10 ms each.

    500 of 610 ms are workers that start, whatever the window of 8 steps, without any start, shows.
    """
    facts = restarting(10, 520, 10)
    bound = found(facts, "WB101")
    assert bound is not None
    assert "mostly for workers that start anew at every epoch" in bound.title
    assert bound.setting == {"persistent_workers": True}
    few = found(facts, "WB105")
    assert few is not None
    # 66 ms a step, 61 of them waiting, and 11 of these without the starts.
    assert few.saving_ns_per_step_at_most is not None
    assert few.saving_ns_per_step_at_most <= 11.1 * MS
    assert few.share_of_window == pytest.approx(11 / 66, rel=0.01)
    assert "beside the start of epochs" in few.title
    started = found(facts, "WB104")
    assert started is not None
    assert started.saving_ns_per_step_at_most == pytest.approx(51 * MS)  # 520 − 10 of every tenth


def test_d02_waits_that_are_long_without_a_start_are_no_starts() -> None:
    """10 ms for every batch and 30 for the first: nothing stands out."""
    facts = restarting(10, 30, 10)
    bound, few = found(facts, "WB101"), found(facts, "WB105")
    assert bound is not None
    assert few is not None
    assert "start" not in bound.title
    assert "start" not in few.title


def test_d02_an_epoch_of_one_batch_has_no_later_ones_to_tell_of() -> None:
    """120 ms from start to batch, 20 of them to make it: 100 of the 125 ms of every step."""
    finding = found(restarting(1, 120, 0), "WB104")
    assert finding is not None
    assert finding.title == "Starting 2 workers takes 100 ms of every epoch (80 %)."
    assert finding.evidence["median_wait_us"] is None
    assert finding.saving_ns_per_step_at_most == 100 * MS


def test_d02_one_worker_is_named_as_one() -> None:
    facts = restarting(10, 520, 10)
    alone = tuple(replace(each, workers=1) for each in facts.epoch_starts)
    finding = found(replace(facts, epoch_starts=alone), "WB104")
    assert finding is not None
    assert finding.title.startswith("Starting 1 worker takes")
