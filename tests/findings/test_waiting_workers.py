"""How many workers are advised follows what they do: compute, or wait, and for what."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from tests.findings.facts import MS, codes, found, stages, waiting
from tests.findings.loading import Working, profiled
from tests.findings.loops import fired, of
from workbench.findings.finding import Facts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

needs_affinity = pytest.mark.skipif(
    sys.platform != "linux",
    reason="only Linux limits a process to some of its processors (os.sched_setaffinity), and "
    "checks run there: nothing that could be installed is missing",
)


def asleep(**changes: Any) -> Any:
    """80 ms a batch, of which the processor works 4; no file is read."""
    times = {"samples_ns": 800 * MS, "collate_ns": 0, "fetch_cpu_ns": 40 * MS}
    return stages(**(times | {"cpu_share": 0.05} | changes))


def starved(made: Any, workers: int = 2, *, usable: int = 2, **rest: Any) -> Facts:
    """Batches of 80 ms from two workers: one each 40 ms; the step itself takes 10."""
    split = rest.pop("split", {"decode": 2, "storage": 0, "other": 28})
    return waiting(
        40,
        30,
        replay_step_ns=(10 * MS,) * 6,
        loader_stages=made,
        stalls_ns=split,
        stalls_other_ns={"blocked": split.get("other", 0)},
        usable=usable,
        effective={"workers": workers},
        **rest,
    )


def test_workers_that_wait_may_be_more_than_processors() -> None:
    """80 ms against 10: eight. They use a twentieth of a processor each, so two bear them."""
    facts = starved(asleep())
    finding = found(facts, "WB101")
    assert finding is not None
    assert finding.setting == {"workers": 8}
    assert "more than the 2 usable processors help" in finding.advice
    assert "All usable processors" not in finding.advice
    few = found(facts, "WB105")
    assert few is not None
    assert few.setting == {"workers": 8}


def test_workers_that_compute_are_not() -> None:
    facts = starved(stages(), split={"decode": 30})
    finding = found(facts, "WB101")
    assert finding is not None
    assert finding.setting is None
    assert "All usable processors already load data (2 workers)" in finding.advice
    assert "WB105" not in codes(facts)


def test_what_nobody_saw_is_not_said() -> None:
    finding = found(waiting(40, 30, usable=2), "WB101")
    assert finding is not None
    assert "whether they compute or wait was not seen" in finding.advice
    assert "already load data" not in finding.advice


@pytest.mark.parametrize(
    ("share", "workers"), [(0.99, 2), (0.7, 2), (0.5, 2), (0.4, 5), (0.25, 8), (0.01, 8)]
)
def test_as_many_as_the_processors_bear(share: float, workers: int) -> None:
    """Two processors ÷ the share of one that a worker uses, and at most the eight needed."""
    made = stages(fetch_cpu_ns=int(800 * share) * MS, cpu_share=share, collate_ns=0)
    finding = found(starved(made, workers=1), "WB101")
    assert finding is not None
    assert finding.setting == {"workers": workers}


def test_helping_threads_of_a_worker_are_processors_too() -> None:
    """Its own thread rests, but a pool of three decodes for it."""
    finding = found(starved(asleep(active_threads=4.0)), "WB101")
    assert finding is not None
    assert finding.setting is None
    assert "All usable processors" in finding.advice


def test_sixteen_workers_that_wait_are_not_told_to_be_two() -> None:
    system = {"usable_cpus": 2, "worker_cpus": 0.8}
    facts = starved(asleep(), workers=16, loader_system=system)
    assert "WB105" not in codes(facts)
    for each in (found(facts, "WB101"), found(facts, "WB103")):
        assert each is not None
        assert each.setting is None


# What the wait is, in words: file reads only where some were seen


def test_a_sleep_is_no_disk() -> None:
    finding = found(starved(asleep(storage_bytes=0)), "WB103")
    assert finding is not None
    assert "not for reads of files (network, lock or sleep)" in finding.title
    assert "76.0 ms of 80.0 ms a batch" in finding.title
    assert "local disk" not in finding.advice
    assert finding.evidence["storage_bytes_per_batch"] == 0
    assert finding.setting == {"workers": 8}


def test_reads_that_no_disk_of_this_machine_served_come_from_far_away() -> None:
    """The kernel counted no byte from a block device, though the file's system is on one."""
    made = asleep(read_wait_ns=700 * MS, read_bytes=10**7, storage_bytes=0)
    system = {"storage": [{"type": "ext4", "network": False, "rotational": False}]}
    finding = found(starved(made, split={"storage": 30}, loader_system=system), "WB103")
    assert finding is not None
    assert "a disk" not in finding.title
    assert finding.advice.startswith("No byte came from a disk of this machine")


def test_bytes_from_the_disk_of_this_machine_are_not_sent_to_a_local_disk() -> None:
    made = asleep(read_wait_ns=700 * MS, read_bytes=10**7, storage_bytes=10**7)
    system = {
        "storage": [{"type": "ext4", "network": False, "rotational": False}],
        "block_delay_share": 0.7,
    }
    finding = found(starved(made, split={"storage": 30}, loader_system=system), "WB103")
    assert finding is not None
    assert "from a disk (ext4)" in finding.title
    assert "faster disk" in finding.advice
    assert "local disk" not in finding.advice
    assert finding.evidence["block_delay_share"] == 0.7
    assert finding.evidence["storage_bytes_per_batch"] == 10**6


def test_a_spinning_disk_serves_one_read_at_a_time() -> None:
    made = asleep(read_wait_ns=700 * MS, storage_bytes=10**7)
    system = {"storage": [{"type": "ext4", "network": False, "rotational": True}]}
    finding = found(starved(made, split={"storage": 30}, loader_system=system), "WB103")
    assert finding is not None
    assert finding.setting is None


def test_a_hand_over_takes_no_more_than_a_few_times_its_own_work() -> None:
    """Of 40 ms a step, 20 until a batch has come over; pickling it and back takes 1 ms of CPU.

    The rest is a thread that gets no processor: 3 ms are the hand-over's at most, and 7 %.
    """
    made = stages(batch_ns=20.0 * MS, fetch_ns=200 * MS, fetch_cpu_ns=200 * MS, samples_ns=200 * MS)
    split = {"transfer": 20, "decode": 10}
    work = {"serialize_cpu_ns": 5 * MS, "unpickle_cpu_ns": 5 * MS}
    quick = dataclasses.replace(made, **work)
    finding = found(starved(quick, split=split), "WB107")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == 3 * MS
    assert finding.severity == "info"
    none = dataclasses.replace(made, serialize_cpu_ns=MS, unpickle_cpu_ns=MS)
    assert found(starved(none, split=split), "WB107") is None


# The same with real loaders


@needs_affinity
def test_a_loader_that_sleeps_gets_more_workers_than_processors(tmp_path: Path) -> None:
    """4 × 15 ms asleep a batch on two workers, a step of 5 ms: more than two workers help."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(allowed)[:2]))
    try:
        loader = DataLoader(Working(sleep=0.015), 4, num_workers=2)
        run = profiled(loader, tmp_path, step_s=0.005)
        finding, waits = fired(run, "WB101"), fired(run, "WB103")
    finally:
        os.sched_setaffinity(0, allowed)
    assert finding.setting is not None
    assert finding.setting["workers"] > 2
    assert "network, lock or sleep" in waits.title
    assert waits.evidence["blocked_us_per_batch"] > 0.9 * 60_000
    assert not {each.code for each in run.findings} & {"WB102", "WB107"}


def test_python_that_saturates_its_workers_is_not_blamed_on_the_hand_over(tmp_path: Path) -> None:
    """Decoding holds the lock that pickling and unpickling need; what it costs is decoding."""
    loader = DataLoader(Working(cpu=0.005), 4, num_workers=1)
    run = profiled(loader, tmp_path, step_s=0.002)
    assert of(run, "WB107") is None
    decoding = fired(run, "WB102")
    whole = fired(run, "WB101")
    assert decoding.saving_ns_per_step_at_most is not None
    assert whole.saving_ns_per_step_at_most is not None
    # Without decoding the one worker brings batches at once: nearly all that a free loader saves.
    assert decoding.saving_ns_per_step_at_most >= 0.8 * whole.saving_ns_per_step_at_most
    assert decoding.saving_ns_per_step_at_most <= whole.saving_ns_per_step_at_most
