"""Workers that die, raise or hang, loops that are broken off, disks that are full."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from tests.recording.loader.datasets import Deadly, Stages
from tests.recording.loader.driving import take
from workbench.recording.loader.layout import CHUNK, FIELDS, SIZE, Kind, SideFile, pack, read
from workbench.recording.loader.recorder import LoaderRecorder


def batches_until(error: type[BaseException], match: str, loader: Any) -> LoaderRecorder:
    recorder = LoaderRecorder()
    with pytest.raises(error, match=match), recorder:
        for _ in take(recorder, loader):
            pass
    return recorder


@pytest.mark.filterwarnings("ignore:Exception ignored")
def test_a_worker_that_is_killed_leaves_what_it_did() -> None:
    loader = DataLoader(Deadly(signal.SIGKILL), 2, num_workers=1, prefetch_factor=1)
    recorder = batches_until(RuntimeError, "exited unexpectedly|killed by signal", loader)
    done = [row for row in recorder.batches if row.get("fetch_ns") is not None]
    assert [row["batch"] for row in done] == [0, 1, 2]  # sample 6 is in batch 3
    assert recorder.workers[0]["exit_code"] == -signal.SIGKILL


def test_a_worker_that_raises_marks_the_batch_that_failed() -> None:
    loader = DataLoader(Deadly(None), 2, num_workers=1)
    recorder = batches_until(ValueError, "sample 6 is damaged", loader)
    failed = [row["batch"] for row in recorder.batches if row.get("failed")]
    assert failed == [3]


def test_an_error_or_interrupt_in_this_process_leaves_no_probe() -> None:
    class Interrupted(Stages):
        def __getitem__(self, index: int) -> torch.Tensor:
            if index == 5:
                raise KeyboardInterrupt
            return super().__getitem__(index)

    loader = DataLoader(Interrupted(16), 2)
    recorder = batches_until(KeyboardInterrupt, "^$", loader)
    assert [row["batch"] for row in recorder.batches] == [0, 1]


def test_a_loop_that_is_left_keeps_what_was_recorded() -> None:
    with LoaderRecorder() as recorder:
        for number, _ in enumerate(take(recorder, DataLoader(Stages(64), 2, num_workers=1))):
            if number == 3:
                break
    assert len([row for row in recorder.batches if row.get("wait_ns") is not None]) == 4


def test_a_torn_record_at_the_end_is_left_out() -> None:
    whole = pack(Kind.SEND, 0, 7, 100, 5, 4, 3, 2, 1)
    found = read(whole + whole[: SIZE // 2])
    assert found[Kind.SEND] == [
        dict(zip(FIELDS[Kind.SEND], (0, 7, 100, 5, 4, 3, 2, 1), strict=True))
    ]


def test_what_was_not_measured_is_none() -> None:
    (start,) = read(pack(Kind.START, 0, 1))[Kind.START]
    assert start["worker"] == 1
    assert start["ready_ns"] is None


def test_a_full_disk_ends_the_records_and_not_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = SideFile(Path("/dev/full"))
    nowhere.write(pack(Kind.START, 0, 0))
    file = SideFile(tmp_path / "worker.records")
    row = pack(Kind.START, 0, 0)
    for _ in range(CHUNK // SIZE):
        file.write(row)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    file.write(row)
    file.write(row)
    monkeypatch.undo()
    found = read((tmp_path / "worker.records").read_bytes())[Kind.START]
    assert len(found) == CHUNK // SIZE


def test_a_side_file_grows_and_tells_what_was_written_at_once(tmp_path: Path) -> None:
    file = SideFile(tmp_path / "worker.records")
    row = pack(Kind.START, 0, 5)
    for number in range(1, 600):
        file.write(row)
        if number in (1, 255, 256, 257, 599):
            data = (tmp_path / "worker.records").read_bytes()
            assert len(read(data)[Kind.START]) == number
    file.close()
    file.write(row)
    assert len(read((tmp_path / "worker.records").read_bytes())[Kind.START]) == 599


def test_workers_live_without_a_place_for_records(tmp_path: Path) -> None:
    recorder = LoaderRecorder()
    recorder.start()
    assert recorder.probe.folder is not None
    (recorder.probe.folder / "switch").unlink()
    assert len(list(take(recorder, DataLoader(Stages(8), 4, num_workers=1)))) == 2
    recorder.finish()
    assert [row.get("fetch_ns") for row in recorder.batches] == [None, None]
    assert recorder.workers[0]["exit_code"] == 0
