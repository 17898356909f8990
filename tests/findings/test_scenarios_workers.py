"""Reports of slow loading from practice: what processes cost (D02, D05, D07, D08, D10, D12).

Small real loaders where the cause can be made here, facts written by hand where it needs a machine
that is not here. Costs are far from the thresholds, so that a busy machine changes no verdict.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import workbench as wb
from tests.findings.facts import MB, MS, codes, found, stages, waiting
from tests.findings.loading import (
    Count,
    Products,
    Working,
    profiled,
    start_slowly,
    with_threads,
)
from tests.findings.loops import fired, of
from workbench.analysis.loader_evidence import EpochStart
from workbench.findings import changed_count
from workbench.findings.finding import Facts
from workbench.machine.dev_shm import SharedMemory
from workbench.recording import batch_checks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

needs_affinity = pytest.mark.skipif(
    sys.platform != "linux",
    reason="only Linux limits a process to some of its processors (os.sched_setaffinity), and "
    "checks run there: nothing that could be installed is missing",
)


# D02: workers restarted at every epoch


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


# D05: more workers than the process may use


@needs_affinity
def test_d05_workers_are_counted_against_the_affinity(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        run = profiled(DataLoader(Working(cpu=0.002), 4, num_workers=3), tmp_path, steps=4)
    finally:
        os.sched_setaffinity(0, allowed)
    finding = fired(run, "WB105")
    assert finding.evidence["usable_cpus"] == 1
    assert finding.setting == {"workers": 1}
    for each in run.findings:
        assert (each.setting or {}).get("workers", 1) <= 1, each


def test_d05_a_container_that_grants_23_of_208_cores() -> None:
    system = {"usable_cpus": 23, "cpus_affinity": 208, "cpus_quota": 23.0, "worker_cpus": 22.0}
    finding = found(waiting(100, 0, effective={"workers": 104}, loader_system=system), "WB105")
    assert finding is not None
    assert finding.severity == "warning"
    assert "the container grants 23" in finding.title


def test_d05_workers_that_mostly_wait_are_only_noted() -> None:
    system = {"usable_cpus": 4, "worker_cpus": 0.5}
    finding = found(waiting(100, 0, effective={"workers": 16}, loader_system=system), "WB105")
    assert finding is not None
    assert finding.severity == "info"
    assert "may be right" in finding.advice


def test_d05_as_many_workers_as_processors_are_silent() -> None:
    assert "WB105" not in codes(waiting(100, 0, effective={"workers": 8}))


def test_too_few_workers_are_told_how_many_a_step_needs() -> None:
    """80 ms to make a batch, a step of 25 ms: four; two bring one in 40 ms."""
    facts = waiting(40, 15, replay_step_ns=(25 * MS,) * 6, loader_stages=stages())
    finding = found(facts, "WB105")
    assert finding is not None
    assert finding.setting == {"workers": 4}
    assert finding.saving_ns_per_step_at_most == 15 * MS


# D07: pinning helps, hurts, or moves the cost


def test_d07_pinning_that_the_step_waits_for_is_left_out() -> None:
    """Of a wait of 40 ms, 30 while its batch is pinned: 30 of 100 ms."""
    split = {"pin": 30, "decode": 10, "storage": None}
    facts = waiting(100, 40, stalls_ns=split, effective={"pin_memory": True})
    finding = found(facts, "WB107")
    assert finding is not None
    assert finding.setting == {"pin_memory": False}
    assert finding.saving_ns_per_step_at_most == pytest.approx(30 * MS)


def test_d07_batches_of_many_tensors_take_long_to_hand_over() -> None:
    """200 tensors a batch: 40 of 100 ms in the training process, whatever workers do."""
    facts = waiting(100, 40, stalls_ns={"transfer": 40}, loader_stages=stages(unpickle_ns=400 * MS))
    finding = found(facts, "WB107")
    assert finding is not None
    assert "fewer and larger tensors" in finding.advice
    assert finding.evidence["unpickle_us_per_batch"] == 40_000
    assert finding.setting is None  # without a device there is nothing to pin for


def test_d07_pinning_that_no_step_waits_for_is_silent() -> None:
    """It takes 30 ms a batch on its thread, and the step waits for decoding."""
    split = {"pin": 0, "decode": 40}
    facts = waiting(100, 40, stalls_ns=split, loader_stages=stages(pin_ns=300 * MS))
    assert "WB107" not in codes(facts)


# D08: /dev/shm too small


def test_d08_a_shared_memory_that_will_not_suffice_is_said_before_the_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 workers × 2 batches of 400 kB and one in the step: 2 of 1.5 MB."""
    small = SharedMemory(size=1_500_000, free=1_500_000)
    monkeypatch.setattr(batch_checks, "shared_memory", lambda: small)
    loader = DataLoader(Working(numbers=25_000), 4, num_workers=2)
    with pytest.warns(UserWarning, match="expect a bus error"):
        run = profiled(loader, tmp_path, steps=2)
    finding = fired(run, "WB108")
    assert finding.severity == "critical"
    assert finding.setting == {"prefetch_factor": 1}  # three of 400 kB: just 80 %
    assert run.record is not None
    assert any("expect a bus error" in text for text in run.record.warnings)


def room(need_mb: int, free_mb: int, **effective: Any) -> Facts:
    checked = {
        "batch_bytes": need_mb * MB / 9,
        "need_bytes": need_mb * MB,
        "free_bytes": free_mb * MB,
    }
    given = {"workers": 4, "prefetch_factor": 2} | effective
    return waiting(100, 0, input_checks={"shared_memory": checked}, effective=given)


@pytest.mark.parametrize(
    ("need_mb", "free_mb", "severity"),
    [(1900, 64, "critical"), (90, 100, "warning"), (79, 100, None)],
)
def test_d08_above_80_percent_of_what_is_free(
    need_mb: int, free_mb: int, severity: str | None
) -> None:
    finding = found(room(need_mb, free_mb), "WB108")
    assert (None if finding is None else finding.severity) == severity


def test_d08_without_workers_or_tensors_none_is_needed() -> None:
    assert "WB108" not in codes(room(1900, 64, workers=0))
    piped = waiting(
        100,
        0,
        loader_stages=stages(batch_bytes=1e8, sent_bytes=1e8),
        loader_system={"shared_memory_free_bytes": 64 * MB},
    )
    assert "WB108" not in codes(piped)


# D10: an iterable data set duplicated by its workers


def test_d10_samples_that_every_worker_gives_again(tmp_path: Path) -> None:
    """0 … 9 twice in an epoch of two workers."""
    alone = profiled(DataLoader(Count(divided=False), 2), tmp_path, steps=4)
    twice = profiled(DataLoader(Count(divided=False), 2, num_workers=2), tmp_path, steps=4)
    finding = fired(twice, "WB109")
    assert finding.evidence["repeated"] == 10
    assert finding.setting == {"workers": 1}
    assert of(alone, "WB109") is None
    assert "An epoch went from 10" in repr(wb.compare(alone, twice))


def test_d10_a_data_set_that_divides_itself_is_silent(tmp_path: Path) -> None:
    alone = profiled(DataLoader(Count(40, divided=True), 2), tmp_path, steps=4)
    both = profiled(DataLoader(Count(40, divided=True), 2, num_workers=2), tmp_path, steps=4)
    assert of(both, "WB109") is None
    assert "An epoch went from" not in repr(wb.compare(alone, both))


def test_d10_an_epoch_that_drops_a_batch_is_the_same_epoch() -> None:
    def epoch(batches: int, kind: str = "Mine") -> Facts:
        effective = {"samples_per_step": 4, "data_set": kind}
        return Facts(input_checks={"batches_in_epoch": batches}, effective=effective)

    assert changed_count(epoch(10), epoch(11)) is None
    assert changed_count(epoch(10), epoch(40)) is not None
    assert changed_count(epoch(10), epoch(40, "Other")) is None
    assert changed_count(epoch(10), Facts()) is None


# D12: library threads multiplied by workers


@needs_affinity
def test_d12_pools_of_threads_in_every_worker(tmp_path: Path) -> None:
    """2 workers × 4 threads on at most a few processors, all of them multiplying."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(allowed)[:2]))
    try:
        # Forked from a process whose own threads have computed, such workers would hang.
        loader = DataLoader(
            Products(),
            4,
            num_workers=2,
            worker_init_fn=with_threads,
            multiprocessing_context="spawn",
        )
        finding = fired(profiled(loader, tmp_path), "WB106")
    finally:
        os.sched_setaffinity(0, allowed)
    assert finding.evidence["threads_per_worker"] >= 6
    assert "2 workers × " in finding.title
    assert "torch.set_num_threads(1)" in finding.advice


def test_d12_one_thread_a_worker_is_silent(tmp_path: Path) -> None:
    """Torch's own workers have one."""
    assert of(profiled(DataLoader(Products(), 4, num_workers=2), tmp_path), "WB106") is None


def threads(*, each: int, kernel: float, active: float) -> Facts:
    system = {"usable_cpus": 16, "workers": 12, "threads_per_worker": each, "system_share": kernel}
    return Facts(loader_system=system, loader_stages=stages(active_threads=active))


def test_d12_192_threads_on_16_cores_and_the_kernel_is_busy_with_them() -> None:
    """668 threads took 23 % of the processor time into the kernel, 188 took 4 %."""
    finding = found(threads(each=18, kernel=0.23, active=1), "WB106")
    assert finding is not None
    assert "12 workers × 16 threads = 192 on 16 usable processors" in finding.title


def test_d12_threads_in_each_others_way_lengthen_the_work_too() -> None:
    """A worker brings a batch in 40 ms, 10 of it ready without a processor and 30 computing.

    The wait for a processor alone would save 10 of the 38 ms; without spinning threads the 30 get
    shorter as well, so that nothing but the whole wait is a bound.
    """
    made = stages(
        batch_ns=40.0 * MS, fetch_ns=400 * MS, samples_ns=400 * MS, collate_ns=0,
        fetch_cpu_ns=300 * MS, run_delay_ns=100 * MS, active_threads=4.0,
    )  # fmt: skip
    system = {"usable_cpus": 2, "workers": 1, "threads_per_worker": 6, "system_share": 0.2}
    facts = waiting(
        40,
        38,
        loader_stages=made,
        loader_system=system,
        stalls_ns={"oversubscription": 10, "decode": 30},
        effective={"workers": 1},
        usable=2,
    )
    finding = found(facts, "WB106")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(38 * MS)
    assert finding.share_of_window == pytest.approx(0.95 / 4)


def test_d12_threads_that_sleep_cost_nothing() -> None:
    assert found(threads(each=18, kernel=0.04, active=1), "WB106") is None
