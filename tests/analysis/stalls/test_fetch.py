"""A fetch as reading, decoding, waiting for a processor, and anything else that blocks."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.analysis.stalls.hand import batch, looked, records, spans, split
from workbench.analysis.stalls.batches import batches_of
from workbench.analysis.stalls.crowding import crowded_share, crowded_spans
from workbench.analysis.stalls.fetch import fetch_shares

MS = 1_000_000


def shares(*rows: dict[str, Any], crowded: Any = None) -> list[list[float]]:
    """Storage, decode, oversubscription and other of each batch's samples."""
    found = fetch_shares(records(*rows).batches, crowded)
    assert found.samples.sum(axis=1) == pytest.approx(1)
    assert found.collate.sum(axis=1) == pytest.approx(1)
    return [[round(float(share), 6) for share in row] for row in found.samples]


def fetched(cpu: float, *, ms: float = 100, number: int = 0, **more: Any) -> dict[str, Any]:
    """A batch whose samples take so many milliseconds, of them so many on a processor."""
    row = batch(number, wait=(0, ms * 1000), fetch=(0, ms * 1000))
    return row | {"samples_cpu_ns": int(cpu * MS)} | more


def test_the_same_wait_is_storage_or_decode_by_what_the_thread_did() -> None:
    """Both take 100 ms; a cold read blocks the thread for 90 of them, decoding keeps it busy."""
    cold = fetched(10, **looked(100 * MS, read=92 * MS, cpu=10 * MS, read_cpu=2 * MS))
    warm = fetched(99, **looked(100 * MS, read=3 * MS, cpu=99 * MS, read_cpu=2 * MS))
    assert shares(cold) == [[0.9, 0.1, 0, 0]]
    assert shares(warm) == [[0.01, 0.99, 0, 0]]


def test_a_read_from_memory_is_no_wait_for_storage_when_the_thread_was_pushed_aside() -> None:
    """All CPU time is in reads, so the 40 ms without a processor fell into them, too."""
    row = fetched(60, fetch_run_delay_ns=40 * MS)
    row |= looked(100 * MS, read=100 * MS, cpu=60 * MS, read_cpu=60 * MS, run_delay_ns=40 * MS)
    assert shares(row) == [[0, 0.6, 0.4, 0]]


def test_a_wait_for_a_processor_is_taken_from_reads_only_where_it_was_in_them() -> None:
    """A read waits 50 ms for storage, then sleep 30; 20 ms without a processor lie in one of them.

    Off a processor: 100 - 0 ms. Told in the read: 50 - 20 of storage; told behind sleep: 50.
    """
    seen = looked(100 * MS, read=50 * MS, cpu=0, run_delay_ns=20 * MS)
    row = fetched(0, fetch_run_delay_ns=20 * MS, **seen)
    assert shares(row | {"looked_read_run_delay_ns": 20 * MS}) == [[0.3, 0, 0.2, 0.5]]
    assert shares(row | {"looked_read_run_delay_ns": 0}) == [[0.5, 0, 0.2, 0.3]]


def test_a_pool_gets_processors_at_the_rate_at_which_the_thread_that_waits_for_it_did() -> None:
    """Its own thread was ready for 40 ms and got a processor for 20: half of the time.

    So 20 ms of computing in the pool kept it waiting for 40, half of that without a processor, and
    20 of the other 60 ms are left for what nobody knows.
    """
    row = fetched(20, fetch_run_delay_ns=20 * MS, worker=0, fetch_cpu_ns=20 * MS)
    row |= looked(100 * MS, read=0, cpu=20 * MS, run_delay_ns=20 * MS)
    assert shares(row | {"fetch_process_cpu_ns": 40 * MS}) == [[0, 0.4, 0.4, 0.2]]
    # 4 ms beside 60 of waiting are the thread that hands batches over: no sample waits for it.
    assert shares(row | {"fetch_process_cpu_ns": 24 * MS}) == [[0, 0.2, 0.2, 0.6]]


def test_sleep_locks_and_networks_are_neither_storage_nor_decode() -> None:
    row = fetched(10, **looked(100 * MS, read=0, cpu=10 * MS), storage_bytes=0)
    assert shares(row) == [[0, 0.1, 0, 0.9]]


def test_bytes_from_storage_that_no_read_brought_are_mapped_pages() -> None:
    """50 MB came from storage while no read was seen; at 1 MB/s or more that blocks for 90 ms."""
    seen = looked(100 * MS, read=0, cpu=10 * MS)
    assert shares(fetched(10, **seen, storage_bytes=50_000_000)) == [[0.9, 0.1, 0, 0]]
    # 4 kB cannot have blocked for 90 ms: 4 of them at the slowest that is believed.
    assert shares(fetched(10, **seen, storage_bytes=4_000)) == [[0.04, 0.1, 0, 0.86]]


def test_what_collate_read_from_storage_did_not_block_the_samples() -> None:
    """Samples sleep for 90 ms; collate brought the fetch's 50 MB, those looked at none."""
    seen = looked(100 * MS, read=0, cpu=10 * MS, storage_bytes=0)
    assert shares(fetched(10, **seen, storage_bytes=50_000_000)) == [[0, 0.1, 0, 0.9]]


def test_collate_that_waited_for_a_processor_is_told_from_one_that_slept() -> None:
    """100 ms of samples and 40 of collate, 20 of them on a processor; 30 ms without one in all.

    By CPU time 20 of 120 parts of the delay were collate's; where its own was counted, 20 ms.
    """
    row = batch(0, wait=(0, 140_000), fetch=(0, 140_000), collate=40_000)
    row |= {"samples_cpu_ns": 90 * MS, "collate_cpu_ns": 20 * MS, "fetch_run_delay_ns": 30 * MS}
    row |= {"collate_run_delay_ns": 20 * MS}
    found = fetch_shares(records(row).batches)
    assert found.collate[0] == pytest.approx([0.5, 0.5])
    assert found.samples[0] == pytest.approx([0, 0.9, 0.1, 0])


def test_threads_that_decode_for_the_worker_are_decoding() -> None:
    """The worker's own thread waits 80 ms; its other threads use 70 ms of processors meanwhile."""
    row = fetched(20, worker=0, received_ns=100 * MS)
    row |= {"fetch_cpu_ns": 20 * MS, "fetch_process_cpu_ns": 95 * MS, "serialize_cpu_ns": 5 * MS}
    assert shares(row | looked(100 * MS, read=0, cpu=20 * MS)) == [[0, 0.9, 0, 0.1]]
    # Of the training process the other threads have their own work.
    alone = row | {"worker": None, "received_ns": None}
    assert shares(alone | looked(100 * MS, read=0, cpu=20 * MS)) == [[0, 0.2, 0, 0.8]]


def test_batches_that_nobody_looked_at_are_like_those_around_them() -> None:
    """Epoch 0 is cold, epoch 1 warm; in each the second batch was not looked at."""
    cold = fetched(10, **looked(100 * MS, read=90 * MS, cpu=10 * MS))
    warm = fetched(10, epoch=1, **looked(100 * MS, read=0, cpu=10 * MS))
    found = shares(cold, fetched(20, number=1), warm, fetched(20, number=1, epoch=1))
    assert found[1] == [0.8, 0.2, 0, 0]
    assert found[3] == [0, 0.2, 0, 0.8]


def test_a_delay_belongs_to_the_stage_that_used_the_processor() -> None:
    """Samples sleep for 60 ms, collate computes for 20 ms of 40: the 20 ms of delay are its own."""
    row = batch(0, wait=(0, 100_000), fetch=(0, 100_000), collate=40_000)
    row |= {"samples_cpu_ns": 0, "collate_cpu_ns": 20 * MS, "fetch_run_delay_ns": 20 * MS}
    found = fetch_shares(records(row | looked(60 * MS, read=0, cpu=0)).batches)
    assert found.samples.tolist() == [[0, 0, 0, 1]]
    assert found.collate.tolist() == [[0.5, 0.5]]


def test_where_the_kernel_tells_no_delay_full_processors_do() -> None:
    """Two processors, both busy with our two workers from 0 to 250 ms and idle afterwards."""
    at, cpu = [0, 250 * MS, 500 * MS], [0, 245 * MS, 250 * MS]
    system = pd.DataFrame(
        [
            {"at_ns": when, "process": "worker", "pid": pid, "cpu_ns": ns}
            for pid in (1, 2)
            for when, ns in zip(at, cpu, strict=True)
        ]
    )
    found = crowded_spans(system, {"cpus_usable": 2, "cpus_total": 64})
    assert found is not None
    assert (found.start.tolist(), found.end.tolist()) == ([0], [250 * MS])
    rows = (
        fetched(40, fetch_run_delay_ns=None),
        batch(1, fetch=(300_000, 400_000), samples_cpu_ns=40 * MS, fetch_run_delay_ns=None),
    )
    crowded = crowded_share(batches_of(records(*rows).batches), found)
    assert crowded is not None
    assert crowded.tolist() == [1, 0]
    # None of them was looked at, so what the second was blocked by is not known.
    assert shares(*rows, crowded=crowded) == [[0, 0.4, 0.6, 0], [0, 0.4, 0, 0.6]]


def test_what_nobody_could_see_is_none_and_its_time_is_in_other() -> None:
    row = fetched(40, fetch_run_delay_ns=None)
    found = split(records(row), spans((0, 100_000)))
    assert (found.by_part["storage"], found.by_part["oversubscription"]) == (None, None)
    assert found.by_part["other"] == 60 * MS


def test_without_processors_to_know_of_nothing_is_said_about_them() -> None:
    empty = pd.DataFrame({"at_ns": [], "process": [], "pid": [], "cpu_ns": []})
    assert crowded_spans(empty, {"cpus_usable": 2}) is None
    assert crowded_share(batches_of(records(fetched(1)).batches), None) is None
    assert np.isfinite(fetch_shares(records(fetched(0, ms=0)).batches).samples).all()
