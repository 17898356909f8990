"""Small workloads whose loaders are slow for one known reason each."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import workbench as wb
from tests.recording.loader.datasets import burn
from workbench.run.run import Run


class Rows(Dataset[Tensor]):
    """A table in memory, read row by row."""

    def __init__(self, count: int = 10_000) -> None:
        self.table = torch.arange(5.0 * count).reshape(count, 5)

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> Tensor:
        return self.table[index]


class BatchedRows(Rows):
    """The same table, a batch with one index call."""

    def __getitems__(self, indices: list[int]) -> Tensor:
        return self.table[indices]


def as_it_is(batch: Tensor) -> Tensor:
    """Collate for batches that come whole."""
    return batch


class Working(Dataset[Tensor]):
    """Samples that use a processor, wait, or both."""

    def __init__(
        self, *, cpu: float = 0.0, sleep: float = 0.0, count: int = 2000, numbers: int = 5
    ) -> None:
        self.cpu, self.sleep, self.count, self.numbers = cpu, sleep, count, numbers

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        if self.sleep:
            time.sleep(self.sleep)
        if self.cpu:
            burn(self.cpu)
        return torch.full((self.numbers,), float(index))


class Piped(Dataset[Tensor]):
    """Samples that are read from where they come slowly: a pipe stands for a far disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int) -> Tensor:
        with self.path.open("rb") as file:
            data = file.read()
        return torch.full((5,), float(len(data)))


@contextmanager
def slow_pipe(path: Path, seconds: float) -> Iterator[Path]:
    """Whoever opens ``path`` gets its bytes after so long."""
    os.mkfifo(path)
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            with suppress(BrokenPipeError), path.open("wb") as file:
                if not ended.is_set():
                    time.sleep(seconds)
                    file.write(bytes(1000))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield path
    finally:
        ended.set()
        with path.open("rb") as file:
            file.read()
        thread.join(5)


class Count(IterableDataset[Tensor]):
    """0, 1, 2, …; divided among workers or not."""

    def __init__(self, count: int = 10, *, divided: bool) -> None:
        self.count, self.divided = count, divided

    def __iter__(self) -> Iterator[Tensor]:
        info = get_worker_info() if self.divided else None
        first, step = (info.id, info.num_workers) if info else (0, 1)
        yield from (torch.full((5,), float(n)) for n in range(first, self.count, step))


class Arrays(Dataset[Any]):
    """Pictures as numpy arrays."""

    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int) -> Any:
        return np.full((32, 32, 3), index, np.float32)


def list_of_arrays(samples: list[Any]) -> Tensor:
    """Element by element, which torch itself warns of."""
    return torch.tensor(samples)


def stacked(samples: list[Any]) -> Tensor:
    """One copy of memory each."""
    return torch.from_numpy(np.stack(samples))


def start_slowly(worker: int) -> None:
    """As a worker that imports much."""
    time.sleep(0.3)


def with_threads(worker: int) -> None:
    """As a library that sizes its pool to all cores."""
    torch.set_num_threads(4)


class Products(Dataset[Tensor]):
    """Samples that multiply matrices, on as many threads as the worker has."""

    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int) -> Tensor:
        one = torch.full((300, 300), float(index))
        for _ in range(4):
            one = one @ one / 1e9
        return one[0, :5]


def profiled(loader: DataLoader[Any], folder: Path, *, step_s: float = 0.0, steps: int = 20) -> Run:
    """Profile a step that sleeps, as a host that waits for a device, and learns a little."""
    model = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)

    def step(model: nn.Module, batch: Tensor) -> None:
        if step_s:
            time.sleep(step_s)
        optimizer.zero_grad()
        loss = model(batch.flatten(1)[:, :5].float()).square().mean()
        loss.backward()
        optimizer.step()

    work = wb.Workload(model, loader, step=step, name="loading")
    run: Run = wb.profile(work, steps=steps, folder=folder, progress=False)
    return run
