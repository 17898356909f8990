"""Do the switches of the loader change how batches are fetched, and nothing in them?"""

import os
import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, TensorDataset, get_worker_info

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Workload, prepare


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("subset", [False, True])
def test_a_batch_that_is_fetched_at_once_is_the_same_batch(workers: int, subset: bool) -> None:
    rows = TensorDataset(torch.randn(10, 2, 3), torch.arange(10))
    data = Subset(rows, [7, 3, 5, 1, 9, 0]) if subset else rows
    loader = DataLoader(data, 4, shuffle=True, generator=torch.Generator())
    work = Workload(nn.Identity(), loader)
    epochs = {}
    for wanted in (False, True):
        with prepare(work, Settings(batched_fetch=wanted, workers=workers)) as training:
            assert training.effective["batched_fetch"] is wanted
            epochs[wanted] = [next(training.batches()) for _ in range(4)]
    for one, many in zip(epochs[False], epochs[True], strict=True):
        assert type(one) is type(many)
        torch.testing.assert_close(list(one), list(many), rtol=0, atol=0)
    assert "__getitems__" not in rows.__dict__


def test_rows_of_a_plain_tensor_are_fetched_at_once() -> None:
    loader: DataLoader[Any] = DataLoader(torch.arange(12.0).view(6, 2), 4)  # type: ignore[arg-type]
    with prepare(Workload(nn.Identity(), loader), Settings(batched_fetch=True)) as training:
        assert next(training.batches()).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("wanted", [True, False])
def test_a_hugging_face_data_set_is_asked_either_way_and_left_as_it_was(wanted: bool) -> None:
    from datasets import Dataset as Table

    rows = Table.from_dict({"x": [[1.0, 2.0], [3.0, 4.0]]}).with_format("torch")
    before = dict(vars(rows))
    work = Workload(nn.Identity(), DataLoader(rows, 2), step=lambda model, batch: None)
    with prepare(work, Settings(batched_fetch=wanted)) as training:
        assert training.effective["batched_fetch"] is wanted
        assert next(training.batches())["x"].tolist() == [[1, 2], [3, 4]]
    assert vars(rows) == before


class Plain(torch.utils.data.Dataset[Tensor]):
    """Can only be asked sample by sample."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(index)


@pytest.mark.parametrize(
    ("loader", "match"),
    [
        (DataLoader(Plain(), 2), r"Plain has no __getitems__\(indices\).*give it one"),
        (DataLoader(TensorDataset(torch.ones(4)), 2, collate_fn=list), "collate function of"),
        (DataLoader(Plain(), None), "batch_size is None"),
    ],
)
def test_a_data_set_that_cannot_be_asked_at_once_is_refused(loader: Any, match: str) -> None:
    with pytest.raises(SettingError, match=match):
        prepare(Workload(nn.Identity(), loader), Settings(batched_fetch=True)).__enter__()


class Where(torch.utils.data.Dataset[list[int]]):
    """Tells how the worker that reads it was set up."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> list[int]:
        info, opencv = get_worker_info(), sys.modules["cv2"].told  # type: ignore[attr-defined]
        threads = torch.get_num_threads()
        return [threads, *opencv, *os.sched_getaffinity(0), info.id if info else -1]


def test_workers_get_their_threads_and_their_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of torch and of OpenCV, whose pool is as large as the machine otherwise."""
    opencv = types.ModuleType("cv2")
    opencv.told = list[int]()  # type: ignore[attr-defined]
    opencv.setNumThreads = opencv.told.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cv2", opencv)
    cpu = min(os.sched_getaffinity(0))
    loader = DataLoader(Where(), 1, num_workers=1, worker_init_fn=_mark)
    settings = Settings(worker_threads=3, cpu_affinity=(cpu,))
    with prepare(Workload(nn.Identity(), loader), settings) as training:
        threads, *place = (int(value) for value in next(training.batches()))
        assert (threads, place) == (3, [3, 3, cpu, 0]), "before and after the user's own function"
        assert training.effective["worker_threads"] == 3
        assert training.effective["cpu_affinity"] == [cpu]


def _mark(worker: int) -> None:
    """The user's own function sees the threads, and what it sets itself gives way to the switch."""
    assert torch.get_num_threads() == 3
    torch.set_num_threads(2)
