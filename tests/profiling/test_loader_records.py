"""What a Run knows of its loader: every batch, worker and epoch, on the clock of its trace."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import workbench as wb
from tests.profiling.loops import Slow, Trainer, loader, workload
from workbench.errors import TimeLimitError, WorkloadError
from workbench.workload.worker_death import explain_worker_death

pytestmark = pytest.mark.slow


class Killed(Dataset[Any]):
    """Its worker is killed at sample 20."""

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if index == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(4), torch.tensor(0)


def slow(workers: int, **options: Any) -> DataLoader[Any]:
    return DataLoader(Slow(400, 0.001), batch_size=4, num_workers=workers, **options)


def test_every_step_of_a_profile_has_the_batch_that_it_took() -> None:
    run = wb.profile(workload(slow(1)), steps=3, progress=False)
    batches, records = run.loader, run.loader_records
    assert batches is not None
    assert records is not None
    delivered = batches[batches["wait_ns"].notna()]
    assert list(delivered["step"]) == list(range(len(delivered)))
    assert (delivered["samples_ns"] >= 4 * 1_000_000).all()  # four samples sleep a millisecond each
    assert (delivered["worker"] == 0).all()
    assert list(records.workers["exit_code"]) == [0]
    assert list(records.epochs["detail"]) == ["all"]
    assert run.record is not None
    assert run.record.loader is not None
    assert run.record.loader["overhead_share"] >= 0


def test_the_clock_of_the_records_is_that_of_the_trace() -> None:
    run = wb.profile(workload(slow(0)), steps=4, progress=False)
    about, batches, waits = run.loader_records, run.loader, run.input
    assert about is not None
    assert batches is not None
    assert waits is not None
    assert about.about["clock_source"] == "trace"
    error = about.about["clock_error_ns"]
    assert error < 1_000_000
    # Each wait of the trace holds the delivery of exactly one batch.
    for start, length in zip(waits["start_ns"], waits["wait_ns"], strict=True):
        within = batches["wait_start_ns"] >= start - error
        within &= batches["wait_start_ns"] + batches["wait_ns"] <= start + length + error
        assert within.sum() == 1


def test_bringing_a_batch_to_the_device_is_known_inside_the_window_only() -> None:
    run = wb.profile(workload(slow(0)), steps=3, progress=False)
    assert run.loader is not None
    known = run.loader["to_device_ns"].notna()
    assert known.sum() == 3
    assert not known.iloc[0]


def test_the_system_is_sampled_by_process() -> None:
    run = wb.profile(workload(slow(1)), steps=3, progress=False)
    system = run.system
    assert system is not None
    assert set(system["process"]) == {"host", "training", "worker"}
    training = system[system["process"] == "training"].sort_values("at_ns")
    used = training["cpu_ns"].iloc[-1] - training["cpu_ns"].iloc[0]
    passed = training["at_ns"].iloc[-1] - training["at_ns"].iloc[0]
    assert used > 0
    assert passed > 0
    assert system.attrs["cpus_usable"] >= 1
    # A counter that the kernel does not keep is missing and not 0.
    if not system.attrs["block_delay_accounted"]:
        assert system["block_delay_ns"].isna().all()


def test_a_capture_looks_into_the_users_own_loader() -> None:
    trainer, mine = Trainer(), slow(2, persistent_workers=True)
    before = {name: value for name, value in mine.__dict__.items() if name != "_iterator"}
    with wb.capture(warmup=2, steps=4) as cap:
        for number, batch in enumerate(cap.watch(mine)):
            trainer.train(batch)
            cap.step()
            if number == 12:
                break
    batches = cap.run.loader
    assert batches is not None
    delivered = batches[batches["wait_ns"].notna()]
    assert list(delivered["step"]) == list(range(13))
    assert set(delivered["worker"]) == {0, 1}
    after = {name: value for name, value in mine.__dict__.items() if name != "_iterator"}
    assert after == before
    mine._iterator._shutdown_workers()  # type: ignore[union-attr]


def test_a_capture_after_the_workers_started_says_what_it_could_not_see() -> None:
    trainer, mine = Trainer(), loader(16, num_workers=1, persistent_workers=True)
    for batch in mine:
        trainer.train(batch)
    (worker,) = multiprocessing.active_children()
    with wb.capture(warmup=2, steps=4) as cap:
        for batch in cap.watch(mine):
            trainer.train(batch)
            cap.step()
    assert cap.run.loader is not None
    assert cap.run.loader["fetch_ns"].isna().all()
    assert any("ran already before" in note for note in cap.run.notes)
    assert multiprocessing.active_children() == [worker]
    mine._iterator._shutdown_workers()  # type: ignore[union-attr]


def test_a_loop_without_watch_has_no_loader_table_and_says_why() -> None:
    trainer = Trainer()
    with wb.capture(warmup=1, steps=3) as cap:
        for batch in loader(8):
            trainer.train(batch)
            cap.step()
    assert cap.run.loader is None
    assert "cap.watch(loader)" in cap.run.summary.not_measured["loader"]


def test_probes_can_be_left_out() -> None:
    run = wb.profile(workload(), steps=2, record=wb.Record(loader=False), progress=False)
    assert run.loader is None
    assert run.system is None
    assert "Record(loader=False)" in run.summary.not_measured["loader"]


def test_the_records_hold_no_path(tmp_path: Path) -> None:
    run = wb.profile(workload(slow(1)), steps=2, progress=False)
    assert run.folder is not None
    for name in ("loader.arrow", "system.arrow"):
        assert str(tmp_path).encode() not in (run.folder / name).read_bytes()
    assert "loader" in json.loads((run.folder / "run.json").read_text(encoding="utf-8"))


def test_a_killed_worker_is_one_clear_error() -> None:
    data = DataLoader(Killed(), batch_size=4, num_workers=1)
    with pytest.raises(WorkloadError, match=r"a worker of the loader (was killed|died)"):
        wb.profile(workload(data), steps=8, progress=False)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("DataLoader worker (pid 7) is killed by signal: Bus error. It is possible", "--shm-size"),
        ("DataLoader worker (pid 7) is killed by signal: Killed. ", "fewer workers"),
        ("DataLoader worker (pid(s) 7) exited unexpectedly", "workers=0"),
    ],
)
def test_each_way_to_die_has_its_remedy(text: str, remedy: str) -> None:
    assert remedy in str(explain_worker_death(RuntimeError(text)))


def test_other_errors_are_not_explained_away() -> None:
    assert explain_worker_death(RuntimeError("size mismatch")) is None
    assert explain_worker_death(ConnectionResetError("a data set's own server")) is None


def test_a_hung_worker_ends_with_the_time_limit_and_leaves_nobody() -> None:
    data = DataLoader(Slow(400, 30.0), batch_size=4, num_workers=1)
    began = time.monotonic()
    with pytest.raises(TimeLimitError, match="waiting for a batch"):
        wb.profile(workload(data), steps=2, time_limit_s=3, progress=False)
    assert time.monotonic() - began < 25
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_what_cannot_be_pickled_is_explained_as_without_probes() -> None:
    class Local(Slow):
        pass

    data = DataLoader(Local(8, 0.0), 4, num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(WorkloadError, match=r"cannot be pickled.*top of a module"):
        wb.profile(workload(data), steps=2, progress=False)
