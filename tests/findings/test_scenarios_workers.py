"""Reports of slow loading from practice: what processes cost (D05, D07, D08, D10, D12).

Small real loaders where the cause can be made here, facts written by hand where it needs a machine
that is not here. Costs are far from the thresholds, so that a busy machine changes no verdict.
"""

import os
import sys
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
    with_threads,
)
from tests.findings.loops import fired, of
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
