"""Data sets that hold open files and mapped arrays are left where they were."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from workbench.settings import Settings
from workbench.workload import Workload, prepare

ROWS, WIDTH = 24, 8


class Rows(Dataset[tuple[Tensor, int]]):
    """Reads rows from one open file, and counts in a mapped array."""

    def __init__(self, place: Path, mode: Any) -> None:
        self.file = place.open("rb")
        self.mapped = np.memmap(place, dtype=np.float32, mode=mode, shape=(ROWS, WIDTH))

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.file.seek(index * WIDTH * 4)
        row = np.frombuffer(self.file.read(WIDTH * 4), dtype=np.float32).copy()
        if self.mapped.flags.writeable:
            self.mapped[index] += 1
        return torch.from_numpy(row), index % 3


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "rows.bin"
    np.arange(ROWS * WIDTH, dtype=np.float32).tofile(path)
    return path


def run(data: Any, **values: Any) -> None:
    model = nn.Linear(WIDTH, 3)
    work = Workload(model, data, loss=functional.cross_entropy, batch_size=4)
    with prepare(work, Settings(**values)) as training:
        for _ in range(3):
            training.step(next(training.batches()))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_is_read_on_from_where_it_was(place: Path, workers: int) -> None:
    data = Rows(place, "r")
    data.file.read(7)
    run(data, workers=workers)
    assert data.file.tell() == 7
    # A forked worker shares the position with us and has moved it: the next bytes must be ours.
    assert data.file.read(9) == place.read_bytes()[7:16]
    data.file.close()


def test_a_file_of_lines_too(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{number}\n" for number in range(100)))
    with path.open() as lines:
        lines.readline()

        def batches() -> Any:
            for _ in range(4):
                yield torch.full((4, WIDTH), float(lines.readline())), torch.zeros(4).long()

        work = Workload(nn.Linear(WIDTH, 3), batches, loss=functional.cross_entropy)
        with prepare(work) as training:
            training.step(next(training.batches()))
        assert lines.readline() == "1\n"  # only the line 0 was read before the run


@pytest.mark.parametrize("mode", ["c", "r+"])
def test_numbers_in_a_mapped_array_are_put_back(place: Path, mode: str) -> None:
    data, before = Rows(place, mode), place.read_bytes()
    run(data)
    assert data.mapped.tobytes() == before
    data.mapped.flush() if mode == "r+" else None
    assert place.read_bytes() == before
    data.file.close()


def test_a_file_that_is_written_is_left_alone(tmp_path: Path) -> None:
    with (tmp_path / "log.txt").open("w+") as log:

        def step(model: Any, batch: Any) -> None:
            log.write("step\n")

        work = Workload(nn.Linear(WIDTH, 3), [torch.zeros(1)], step=step)
        with prepare(work) as training:
            training.step(next(training.batches()))
        log.flush()
        assert log.tell() == len("step\n")
        log.seek(0, io.SEEK_SET)
        assert log.read() == "step\n"
