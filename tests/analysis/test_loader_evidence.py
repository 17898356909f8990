"""The loader's records in a few numbers, from rows written by hand."""

from typing import Any

import pandas as pd
import pytest

from workbench.analysis.loader_evidence import epoch_starts, loader_stages, loader_system
from workbench.store.loader import BATCH_COLUMNS, SYSTEM_COLUMNS, LoaderRecords

MS = 1_000_000


def batches(*rows: dict[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame([dict.fromkeys(BATCH_COLUMNS) | row for row in rows])
    return frame.astype({n: "Int64" for n, k in BATCH_COLUMNS.items() if k in ("int32", "int64")})


def batch(number: int = 0, **values: Any) -> dict[str, Any]:
    """100 ms to fetch 4 samples: 10 ms of collate, 40 ms of CPU."""
    given = {"fetch_ns": 100, "fetch_cpu_ns": 40, "samples_ns": 90, "collate_ns": 10} | values
    times = {name: ns * MS for name, ns in given.items() if name.endswith("_ns")}
    rest = {name: value for name, value in given.items() if not name.endswith("_ns")}
    about = {"loader": 0, "stream": 0, "epoch": 0, "batch": number, "samples": 4, "failed": False}
    return about | times | rest


def test_waiting_in_reads_goes_from_the_samples_looked_at_to_all() -> None:
    """Of 20 ms looked at, 15 in reads and 5 of them on a processor: half of 90 ms."""
    looked = {"looked_ns": 20, "looked_read_ns": 15, "looked_read_cpu_ns": 5}
    found = loader_stages(batches(batch(**looked)))
    assert found is not None
    assert found.read_wait_ns == 45 * MS
    assert found.read_share == pytest.approx(0.45)
    assert found.sample_ns == 25 * MS


def test_a_busy_machine_is_no_waiting_of_the_loader() -> None:
    """100 ms, of which 50 without a processor: 40 of CPU are 80 % of the rest."""
    found = loader_stages(batches(batch(fetch_run_delay_ns=50)))
    assert found is not None
    assert found.cpu_share == pytest.approx(0.8)


def test_a_batch_that_was_interrupted_decides_nothing() -> None:
    """Two batches of 100 ms with 40 of CPU; a third took 2 s for the same work."""
    found = loader_stages(batches(batch(), batch(1), batch(2, fetch_ns=2000)))
    assert found is not None
    assert found.cpu_share == pytest.approx(0.4)
    assert found.sample_ns == 25 * MS


def test_what_was_looked_at_in_some_batches_counts_for_all() -> None:
    found = loader_stages(batches(batch(read_bytes=1000), batch(1)))
    assert found is not None
    assert found.read_bytes == 2000
    assert found.read_wait_ns is None


def test_threads_of_a_worker_that_used_a_processor() -> None:
    """Its thread 40 ms and all its threads 240 ms, in 100 ms: two more were at work."""
    found = loader_stages(batches(batch(worker=0, fetch_process_cpu_ns=240)))
    assert found is not None
    assert found.active_threads == pytest.approx(3)


def test_without_a_look_inside_nothing_is_known() -> None:
    assert loader_stages(batches({"batch": 0, "wait_ns": 5 * MS, "failed": False})) is None


def test_each_epoch_has_its_start_and_its_later_waits() -> None:
    """Starting takes 30 ms and the first batch 170 more; the other two come in 2 ms."""
    waits = [170, 2, 2]
    rows = [
        batch(number, stream=epoch, wait_ns=wait, wait_start_ns=epoch * 1000 + number)
        for epoch in (0, 1)
        for number, wait in enumerate(waits)
    ]
    epochs = pd.DataFrame(
        [
            {"loader": 0, "stream": n, "epoch": 0, "start_ns": n * 400 * MS, "iter_ns": 30 * MS}
            | {"workers": 2, "detail": "all", "first_step": n * 3}
            for n in (0, 1)
        ]
    )
    records = LoaderRecords(batches=batches(*rows), workers=pd.DataFrame(), epochs=epochs, about={})
    first, second = epoch_starts(records)
    assert first.start_wait_ns == second.start_wait_ns == 200 * MS
    assert first.median_wait_ns == 2 * MS
    assert first.length_ns == 400 * MS
    assert second.length_ns is None


def system(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([dict.fromkeys(SYSTEM_COLUMNS) | row for row in rows])


def test_processes_are_compared_with_what_they_may_use() -> None:
    """In 1 s two workers use 0.9 s and the training 0.6 s of CPU, 0.6 s of it in the kernel."""
    rows = []
    for at in (0, 1):
        for process, pid, cpu, user, kernel in (
            ("training", 1, 600, 500, 100),
            ("worker", 2, 400, 200, 200),
            ("worker", 3, 500, 200, 300),
        ):
            rows.append(
                {
                    "at_ns": at * 1_000 * MS,
                    "process": process,
                    "pid": pid,
                    "cpu_ns": at * cpu * MS,
                    "user_ns": at * user * MS,
                    "system_ns": at * kernel * MS,
                    "run_delay_ns": at * 500 * MS,
                    "involuntary_switches": at * 100,
                    "threads": 5 if process == "worker" else 9,
                }
            )
        rows.append({"at_ns": at * 1_000 * MS, "process": "host"})
    found = loader_system(system(*rows), {"cpus_usable": 2})
    assert found["usable_cpus"] == 2
    assert found["workers"] == 2
    assert found["threads_per_worker"] == 5
    assert found["training_threads"] == 9
    assert found["worker_cpus"] == pytest.approx(0.9)
    assert found["system_share"] == pytest.approx(600 / 1500)
    assert found["run_delay_share"] == pytest.approx(1500 / 3000)
    assert found["involuntary_switches_per_s"] == pytest.approx(300)
    assert found["shared_memory_free_bytes"] is None
