"""Every stage of a batch takes as long as the data's own clocks say."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from tests.recording.loader.datasets import (
    FIELDS,
    BatchedStages,
    Collated,
    Files,
    Letter,
    Letters,
    Served,
    Stages,
    StreamedStages,
    only,
)
from tests.recording.loader.driving import record
from workbench.recording.loader.recorder import LoaderRecorder

pytestmark = pytest.mark.slow


BATCH = 4
KINDS = {"map": Stages, "batched": BatchedStages, "iterable": StreamedStages}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Large enough that reading it from memory takes milliseconds."""
    path: Path = tmp_path_factory.mktemp("data") / "sample.bin"
    path.write_bytes(bytes(16_000_000))
    return path


def loader(kind: str, workers: int, *, collate_s: float = 0.0, **options: Any) -> DataLoader[Any]:
    stages = {name: options.pop(name) for name in ("sleep", "cpu", "file") if name in options}
    data = KINDS[kind](32, **stages)
    collate = Collated(collate_s)
    return DataLoader(data, BATCH, num_workers=workers, collate_fn=collate, **options)


def pairs(batches: list[Any], recorder: LoaderRecorder) -> list[tuple[dict[str, Any], Any]]:
    """Each row with the batch that was delivered for it."""
    delivered = [row for row in recorder.batches if row.get("wait_ns") is not None]
    assert len(delivered) == len(batches)
    return list(zip(delivered, batches, strict=True))


def of(batch: Any, field: str) -> int:
    return int(batch[0][:, FIELDS.index(field)].sum())


def agrees(told: list[float], true: list[float], *, within: float = 0.1) -> None:
    """The batch that agrees best does: a busy machine pauses the others.

    A pause counts when it falls between the data's own clocks and ours. A stage that was measured
    wrongly is wrong in every batch.
    """
    ratios = [a / b for a, b in zip(told, true, strict=True)]
    assert min(abs(ratio - 1) for ratio in ratios) < within, ratios


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_and_collate_take_what_their_own_clocks_say(kind: str, workers: int) -> None:
    batches, recorder = record(loader(kind, workers, sleep=0.003, cpu=0.004, collate_s=0.004))
    found = pairs(batches, recorder)
    assert [row["samples"] for row, _ in found] == [BATCH] * len(batches)
    agrees([r["samples_ns"] for r, _ in found], [of(b, "wall") for _, b in found])
    agrees([r["samples_cpu_ns"] for r, _ in found], [of(b, "cpu") for _, b in found])
    agrees([r["collate_ns"] for r, _ in found], [int(b[1][0]) for _, b in found])
    agrees([r["collate_cpu_ns"] for r, _ in found], [int(b[1][1]) for _, b in found])


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_reads_of_a_sample_are_told_from_the_rest_of_it(
    kind: str, workers: int, file: Path
) -> None:
    batches, recorder = record(loader(kind, workers, cpu=0.002, sleep=0.002, file=file))
    looked, true = [], []
    for row, batch in pairs(batches, recorder):
        for item in row.get("items", ()):
            first = item["position"] if item["samples"] == 1 else 0
            reads = batch[0][first : first + item["samples"], FIELDS.index("read")]
            if item["read_ns"] is not None:
                looked.append(item["read_ns"] - (item["read_run_delay_ns"] or 0))
                true.append(int(reads.sum()))
                assert item["read_bytes"] >= 16_000_000 * item["samples"]
                # Its clock reads a few bytes of /proc first: those are of another file system.
                assert item["file_system"] == file.stat().st_dev
    assert looked  # at least the first sample of each worker
    agrees(looked, true)


def test_a_sample_that_reads_nothing_has_read_for_no_time() -> None:
    _, recorder = record(loader("map", 1, sleep=0.01))
    items = [item for row in recorder.batches for item in row.get("items", ())]
    assert items
    assert {item["read_ns"] for item in items} == {0}
    # Asleep: hardly any CPU time, and no processor was waited for all that time either.
    assert all(item["cpu_ns"] < 0.2 * item["dur_ns"] for item in items)


@pytest.mark.parametrize("through", ["recv", "file"])
def test_waiting_for_a_socket_is_no_read_of_a_file(through: str) -> None:
    """20 ms until the bytes come: no faster disk ends that, so none of it is a read."""
    _, recorder = record(DataLoader(Served(0.02, through), 2))
    items = [item for row in recorder.batches for item in row.get("items", ())]
    assert items
    assert {item["read_ns"] for item in items} == {0}
    assert all(item["dur_ns"] >= 19_000_000 for item in items)


def test_a_wait_for_a_processor_is_no_sleep(file: Path) -> None:
    _, recorder = record(loader("map", 2, cpu=0.02))
    rows = [row for row in recorder.batches if row["fetch_run_delay_ns"] is not None]
    assert rows
    for row in rows:  # burning: what is not CPU time is time without a processor
        off = row["fetch_ns"] - row["fetch_cpu_ns"]
        assert row["fetch_run_delay_ns"] == pytest.approx(off, abs=0.1 * row["fetch_ns"])


def evict(path: Path) -> None:
    """Ask the system to forget what it keeps of a file in memory."""
    with path.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_bytes_from_storage_are_told_from_those_of_the_page_cache(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.bin" for number in range(8)]
    for path in paths:
        path.write_bytes(bytes(4_000_000))
        evict(path)
    for _ in range(2):  # the second time they come from memory
        batches, recorder = record(DataLoader(Files(paths), 2, num_workers=1))
        counted = 0
        for row, batch in zip(recorder.batches, batches, strict=True):
            for item in row.get("items", ()):
                counted += 1
                assert item["storage_bytes"] == int(batch[item["position"]])
                assert item["read_bytes"] >= 4_000_000
            if row["storage_bytes"] is not None:
                assert row["storage_bytes"] == int(batch.sum())
                assert row["read_bytes"] >= 8_000_000
        assert counted
    assert sum(int(batch.sum()) for batch in batches) == 0


def test_pickling_and_unpickling_take_what_the_letter_says() -> None:
    Letter.unpickled.clear()
    data: DataLoader[Any] = DataLoader(Letters(), batch_size=1, num_workers=1, collate_fn=only)
    batches, recorder = record(data)
    rows = recorder.batches
    agrees([row["serialize_ns"] for row in rows], [letter.pickled_ns for letter in batches])
    agrees([row["unpickle_ns"] for row in rows], [float(ns) for ns in Letter.unpickled])
    # Letters sleep while they are opened: hardly any CPU time.
    assert all(0 < row["unpickle_cpu_ns"] < 0.5 * row["unpickle_ns"] for row in rows)
    assert all(row["sent_bytes"] > 0 and row["send_ns"] >= 0 for row in rows)


def test_a_batch_is_followed_from_its_index_to_the_loop() -> None:
    _, recorder = record(loader("map", 2, sleep=0.002))
    assert len(recorder.batches) == 8
    for row in recorder.batches:
        fetched = row["fetch_start_ns"] + row["fetch_ns"]
        assert row["index_wait_start_ns"] + row["index_wait_ns"] <= row["fetch_start_ns"]
        assert row["fetch_start_ns"] <= row["collate_start_ns"] <= fetched
        assert fetched <= row["serialize_start_ns"] <= row["received_ns"]
        delivered = row["wait_start_ns"] + row["wait_ns"]
        assert row["received_ns"] <= delivered
        assert row["held_ns"] == delivered - row["received_ns"]
        if row["batch_bytes"] is not None:  # five int64 a sample, two of collate
            assert row["batch_bytes"] == 5 * 8 * BATCH + 16
    assert any(row["batch_bytes"] for row in recorder.batches)
    assert {row["worker"] for row in recorder.batches} == {0, 1}
    assert [row["step"] for row in recorder.batches] == list(range(8))
    # With two workers in order, the first batches are put by the loader's start, unseen.
    assert any(row.get("sampler_ns") is not None for row in recorder.batches)


def test_a_batch_that_arrives_early_is_held_until_its_turn() -> None:
    class FirstIsSlow(Stages):
        def __getitem__(self, index: int) -> torch.Tensor:
            self.stages["sleep"] = 0.2 if index < BATCH and index == 0 else 0.001
            return super().__getitem__(index)

    data = DataLoader(FirstIsSlow(16), BATCH, num_workers=2, collate_fn=Collated(0))
    _, recorder = record(data)
    first, second = recorder.batches[:2]
    # Batch 1 of the other worker came while batch 0 was waited for.
    assert second["received_ns"] < first["received_ns"]
    assert second["held_ns"] > 0.1e9
    assert first["wait_ns"] > 0.19e9


def test_batches_out_of_order_are_known_by_their_numbers() -> None:
    data = DataLoader(
        Stages(32, sleep=0.005), BATCH, num_workers=2, in_order=False, collate_fn=Collated(0)
    )
    batches, recorder = record(data)
    found = pairs(batches, recorder)
    assert sorted(row["batch"] for row, _ in found) == list(range(8))
    agrees([r["samples_ns"] for r, _ in found], [of(b, "wall") for _, b in found])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_of_any_start_method_tell_their_start(method: str) -> None:
    batches, recorder = record(
        loader("map", 2, sleep=0.005, cpu=0.003, multiprocessing_context=method)
    )
    found = pairs(batches, recorder)
    agrees([r["samples_ns"] for r, _ in found], [of(b, "wall") for _, b in found])
    assert len(recorder.workers) == 2
    for worker in recorder.workers:
        assert worker["created_ns"] < worker["entered_ns"] < worker["ready_ns"]
        assert worker["ready_ns"] - worker["created_ns"] > 0.2e9  # a fresh Python imports torch
        assert worker["exit_code"] == 0
