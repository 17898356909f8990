"""Loaders of other packages through a profile and a capture: seen inside, or honestly less.

The fixture of this folder asserts after each test that no worker process is alive.
"""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import workbench as wb
from tests.profiling.failing import Failing, Streamed
from tests.profiling.loops import workload
from workbench.run.run import Run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),  # of torchdata
    pytest.mark.filterwarnings("ignore::DeprecationWarning:webdataset"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # WebDataset leaves its files open
]
SAMPLES = 200


def stateful(folder: Path, workers: int) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(Failing(bool, -1, SAMPLES), batch_size=4, num_workers=workers)


def stateful_persistent(folder: Path, workers: int) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    data = Failing(bool, -1, 40)  # so that a profile goes through epochs
    return StatefulDataLoader(
        data, batch_size=4, num_workers=workers, persistent_workers=workers > 0
    )


def stateful_stream(folder: Path, workers: int) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(Streamed(), batch_size=4, num_workers=workers)


def hugging_face(folder: Path, workers: int, *, stream: bool = False) -> Any:
    import datasets

    table = datasets.Dataset.from_dict({"x": np.arange(4.0 * SAMPLES).reshape(-1, 4).tolist()})
    table = table.with_format("torch")
    data: Any = table.to_iterable_dataset(num_shards=2) if stream else table
    return DataLoader(data, batch_size=4, num_workers=workers)


def hugging_face_stream(folder: Path, workers: int) -> Any:
    return hugging_face(folder, workers, stream=True)


def web_dataset(folder: Path) -> Any:
    import webdataset

    paths = []
    for number in range(2):
        path = folder / f"shard-{number}.tar"
        paths.append(str(path))
        with tarfile.open(path, "w") as tar:
            for index in range(SAMPLES // 2):
                about = tarfile.TarInfo(f"{number}{index}.txt")
                about.size = 10_000
                tar.addfile(about, io.BytesIO(b"x" * about.size))
    return webdataset.WebDataset(paths, shardshuffle=False).decode().to_tuple("txt")


def web(folder: Path, workers: int) -> Any:
    return DataLoader(web_dataset(folder), batch_size=4, num_workers=workers)


def web_loader(folder: Path, workers: int) -> Any:
    import webdataset

    data = web_dataset(folder).batched(4)
    return webdataset.WebLoader(data, batch_size=None, num_workers=workers)


class Graph:
    """A batch that is no container and moves itself, as graph libraries make it."""

    def __init__(self, samples: list[Any]) -> None:
        self.x = torch.stack([row for row, _ in samples])

    def to(self, device: Any, **options: Any) -> "Graph":
        self.x = self.x.to(device, **options)
        return self


def graphs(folder: Path, workers: int) -> Any:
    return DataLoader(
        Failing(bool, -1, SAMPLES), batch_size=4, num_workers=workers, collate_fn=Graph
    )


LOADERS: list[Callable[[Path, int], Any]] = [
    stateful,
    stateful_persistent,
    stateful_stream,
    hugging_face,
    hugging_face_stream,
    web,
    web_loader,
    graphs,
]


def state_of(loader: Any) -> Any:
    """What a loader tells of where it is, and what it holds."""
    told = loader.state_dict() if hasattr(loader, "state_dict") else None
    inner = [dict(part.__dict__) for part in getattr(loader, "pipeline", ())]
    return told, dict(loader.__dict__), inner


def samples_of(batch: Any) -> int:
    if isinstance(batch, Graph):
        return len(batch.x)
    return len(batch["x"] if isinstance(batch, dict) else batch[0])


def check(run: Run, make: Any, workers: int) -> None:
    records = run.loader_records
    assert records is not None
    fetched = records.batches["fetch_ns"].dropna()
    rank = run.rank()
    if rank.stalls is None:
        assert "cannot be seen" in run.summary.not_measured["stalls"]
    else:
        split = rank.stalls.by_part
        assert sum(ns or 0 for ns in split.values()) == rank.exposed_input_ns
    seen_inside = make is not web_loader or workers
    assert (len(fetched) > 0) == bool(seen_inside)
    assert (records.batches["worker"].dropna().nunique() if workers else 0) <= workers


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", LOADERS)
def test_a_profile(make: Callable[[Path, int], Any], workers: int, tmp_path: Path) -> None:
    loader, kind = make(tmp_path, workers), type(next(iter(make(tmp_path, 0))))

    def step(model: Any, batch: Any) -> None:
        assert type(batch) is kind
        assert samples_of(batch) == 4
        model(torch.ones(4, 4)).sum().backward()

    before = state_of(loader)
    run = wb.profile(workload(loader, step=step), steps=6, progress=False)
    assert state_of(loader) == before
    check(run, make, workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", LOADERS)
def test_a_capture(make: Callable[[Path, int], Any], workers: int, tmp_path: Path) -> None:
    """The loop sees the batches that it would see without us, in the same order."""
    loader, seen = make(tmp_path, workers), 0
    with wb.capture(warmup=2, steps=4) as cap:
        for _batch in cap.watch(loader):
            torch.ones(8, 8) @ torch.ones(8, 8)
            cap.step()
            seen += 1
    expected = sum(1 for _ in make(tmp_path, workers))
    assert seen == expected
    check(cap.run, make, workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_goes_on_from_where_a_watched_loop_left_it(
    workers: int, tmp_path: Path
) -> None:
    """Its state after ten watched batches is its state after ten batches."""
    states = []
    for watched in (False, True):
        torch.manual_seed(0)  # of the workers; it is part of the state
        loader = stateful(tmp_path, workers)
        with wb.capture(warmup=2, steps=4) as cap:
            for number, _ in enumerate(cap.watch(loader) if watched else loader):
                cap.step()
                if number == 9:
                    states.append(loader.state_dict())
                    break
        twin = stateful(tmp_path, workers)
        twin.load_state_dict(states[-1])
        assert sum(1 for _ in twin) == SAMPLES // 4 - 10
    assert states[0] == states[1]
