"""The probes change nothing: not the data, not chance, not the user's loader."""

import random
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, get_worker_info

from tests.recording.loader.datasets import Chance, Stages, StreamedStages
from tests.recording.loader.driving import record, take
from workbench.recording.loader.attributes import Attributes
from workbench.recording.loader.recorder import LoaderRecorder


def seeded(loader: DataLoader[Any], *, probed: bool) -> list[Any]:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    batches = record(loader)[0] if probed else list(loader)
    after = random.random(), np.random.random(), torch.rand(()).item()
    return [*batches, after]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_order_and_chance_are_the_same_with_probes(workers: int) -> None:
    def loader() -> DataLoader[Any]:
        return DataLoader(Chance(), 4, shuffle=True, num_workers=workers, collate_fn=list)

    assert seeded(loader(), probed=True) == seeded(loader(), probed=False)


def test_a_worker_function_sees_its_own_data_set() -> None:
    seen = []

    def init(worker: int) -> None:
        info = get_worker_info()
        assert info is not None
        info.dataset.name = f"set by {worker}"  # type: ignore[attr-defined]

    class Named(Chance):
        name = ""

        def __getitem__(self, index: int) -> Any:
            return self.name

    data: Any = DataLoader(
        Named(), 4, num_workers=2, worker_init_fn=init, collate_fn=list, persistent_workers=False
    )
    batches, _ = record(data)
    seen = [name for batch in batches for name in batch]
    assert set(seen) == {"set by 0", "set by 1"}


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_has_its_attributes_back_when_it_has_started(workers: int) -> None:
    loader = DataLoader(Stages(16), 4, num_workers=workers)
    before = dict(loader.__dict__)
    with LoaderRecorder() as recorder:
        for _ in take(recorder, loader):
            assert loader.__dict__ == before
    assert loader.__dict__ == before


@pytest.mark.parametrize("kind", [Stages, StreamedStages])
def test_an_iterator_that_lives_on_is_as_torch_made_it(kind: Any) -> None:
    loader: DataLoader[Any] = DataLoader(kind(16), 4, num_workers=0)
    plain = iter(loader)
    fresh = set(plain.__dict__), set(plain._dataset_fetcher.__dict__)
    recorder = LoaderRecorder()
    recorder.start()
    probed = recorder.probe.iterate(loader, lambda: iter(loader))
    next(probed)
    assert set(probed.__dict__) > fresh[0]
    recorder.finish()
    assert (set(probed.__dict__), set(probed._dataset_fetcher.__dict__)) == fresh
    assert type(probed._dataset_fetcher.__dict__.get("dataset")) is kind
    assert len(list(probed)) == 3


def test_persistent_workers_that_we_started_go_on_without_us() -> None:
    loader = DataLoader(Stages(16), 4, num_workers=2, persistent_workers=True)
    with LoaderRecorder() as recorder:
        assert len(list(take(recorder, loader))) == 4
        assert len(list(take(recorder, loader))) == 4
    rows = recorder.batches
    assert [(row["epoch"], row["batch"]) for row in rows] == [
        (epoch, batch) for epoch in (0, 1) for batch in range(4)
    ]
    assert all(row["fetch_ns"] > 0 and row["received_ns"] for row in rows)
    iterator: Any = loader._iterator
    pids = [worker.pid for worker in iterator._workers]
    queue = iterator._worker_result_queue
    assert "get" not in queue.__dict__
    assert queue._poll == queue._reader.poll
    assert queue._recv_bytes == queue._reader.recv_bytes
    assert len(list(loader)) == 4
    assert [worker.pid for worker in loader._iterator._workers] == pids  # type: ignore[attr-defined]
    iterator._shutdown_workers()


def test_workers_that_ran_before_us_are_left_running_and_said() -> None:
    loader = DataLoader(Stages(16), 4, num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 4
    iterator: Any = loader._iterator
    before, pids = set(iterator.__dict__), [worker.pid for worker in iterator._workers]
    batches, recorder = record(loader)
    assert len(batches) == 4
    assert loader._iterator is iterator
    assert set(iterator.__dict__) == before
    assert [worker.pid for worker in iterator._workers] == pids
    assert [row.get("fetch_ns") for row in recorder.batches] == [None] * 4
    assert all(row["received_ns"] for row in recorder.batches)
    assert "ran already before the measurement began" in recorder.probe.notes[0]
    iterator._shutdown_workers()


def test_a_profile_function_of_the_users_is_left_alone() -> None:
    seen: list[str] = []

    def mine(frame: Any, event: str, argument: Any) -> None:
        seen.append(event)

    sys.setprofile(mine)
    try:
        batches, recorder = record(DataLoader(Stages(8), 4))
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)
    assert len(batches) == 2
    items = [item for row in recorder.batches for item in row["items"]]
    assert {item["read_ns"] for item in items} == {None}  # not measured, and not 0


def test_attributes_are_put_back_even_where_there_were_none() -> None:
    class Thing:
        pass

    thing, attributes = Thing(), Attributes()
    thing.__dict__["kept"] = 1
    attributes.set(thing, "kept", 2)
    attributes.set(thing, "new", 3)
    attributes.set(thing, "kept", 4)
    attributes.restore()
    attributes.restore()
    assert thing.__dict__ == {"kept": 1}
