"""Loaders of other packages, on data made here."""

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from tests.recording.loader.datasets import Collated, Stages, StreamedStages
from tests.recording.loader.driving import record


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Stages, StreamedStages])
def test_a_stateful_loader_of_torchdata(kind: Any, workers: int) -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader

    loader = StatefulDataLoader(
        kind(16, sleep=0.001), 4, num_workers=workers, collate_fn=Collated(0)
    )
    batches, recorder = record(loader)
    rows = recorder.batches
    assert len(batches) == 4
    assert [row["wait_ns"] > 0 for row in rows] == [True] * 4
    assert all(row["samples_ns"] > 4e6 for row in rows)
    assert loader.state_dict()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stream", [False, True])
def test_a_data_set_of_hugging_face(stream: bool, workers: int) -> None:
    import datasets

    table = datasets.Dataset.from_dict({"x": np.arange(32.0).tolist()}).with_format("torch")
    data: Any = table.to_iterable_dataset(num_shards=2) if stream else table
    batches, recorder = record(DataLoader(data, 8, num_workers=workers))
    assert sum(len(batch["x"]) for batch in batches) == 32
    rows = [row for row in recorder.batches if row.get("wait_ns") is not None]
    assert len(rows) == len(batches)
    assert all(row["samples_ns"] > 0 and row["collate_ns"] > 0 for row in rows)


def shards(folder: Path) -> list[str]:
    """Two tar files of eight samples each."""
    paths = []
    for number in range(2):
        path = folder / f"shard-{number}.tar"
        with tarfile.open(path, "w") as tar:
            for index in range(8):
                about = tarfile.TarInfo(f"{number}{index}.txt")
                text = b"x" * 100_000
                about.size = len(text)
                tar.addfile(about, io.BytesIO(text))
        paths.append(str(path))
    return paths


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_web_dataset(tmp_path: Path, workers: int) -> None:
    import webdataset

    data: Any = webdataset.WebDataset(shards(tmp_path), shardshuffle=False)
    data = data.decode().to_tuple("txt")
    batches, recorder = record(DataLoader(data, 4, num_workers=workers))
    assert sum(len(batch[0]) for batch in batches) == 16
    rows = [row for row in recorder.batches if row.get("wait_ns") is not None]
    assert len(rows) == len(batches)
    # 16 samples of 100 kB were read, and every worker's first sample was looked at.
    looked = [item for row in rows for item in row.get("items", ())]
    assert sum(item["read_bytes"] for item in looked) >= 100_000
    assert any(item["read_ns"] for item in looked)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_loader_whose_inside_starts_later_tells_waits_and_workers(tmp_path: Path) -> None:
    import webdataset

    data: Any = webdataset.WebDataset(shards(tmp_path), shardshuffle=False)
    data = data.decode().to_tuple("txt").batched(4)
    loader: Any = webdataset.WebLoader(data, batch_size=None, num_workers=2)
    before = dict(loader.pipeline[0].__dict__)
    batches, recorder = record(loader)
    assert loader.pipeline[0].__dict__ == before
    assert [epoch.detail for epoch in recorder.probe.epochs] == ["worker processes"]
    waits = [row for row in recorder.batches if row.get("wait_ns") is not None]
    fetched = [row for row in recorder.batches if row.get("fetch_ns") is not None]
    assert len(waits) == len(batches)
    assert len(fetched) == len(batches)


def test_any_iterable_tells_its_waits() -> None:
    batches, recorder = record([1, 2, 3])
    assert batches == [1, 2, 3]
    assert [row["batch"] for row in recorder.batches] == [None] * 3
    assert all(row["wait_ns"] >= 0 for row in recorder.batches)
    assert [epoch.detail for epoch in recorder.probe.epochs] == ["waits"]
