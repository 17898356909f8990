"""Data whose stages take known time: every sample carries what its own clocks said."""

import os
import random
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, get_worker_info

FIELDS = ("wall", "cpu", "read", "slept", "burnt")


def burn(seconds: float) -> int:
    """Use that much CPU time of this thread; returns how much it was."""
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < seconds * 1e9:
        sum(range(5_000))
    return time.thread_time_ns() - began


def make_sample(*, sleep: float, cpu: float, file: Path | None) -> Tensor:
    """One sample: read, sleep, burn; its numbers are in the order of ``FIELDS``."""
    wall, used = time.monotonic_ns(), time.thread_time_ns()
    read = 0 if file is None else _read(file)
    began = time.monotonic_ns()
    if sleep:
        time.sleep(sleep)
    slept = time.monotonic_ns() - began
    burnt = burn(cpu) if cpu else 0
    wall, used = time.monotonic_ns() - wall, time.thread_time_ns() - used
    return torch.tensor([wall, used, read, slept, burnt])


def _read(file: Path) -> int:
    """Time to open and read a file, without what this thread was ready and had no processor for.

    A busy machine pauses threads anywhere. To give the memory back is no read.
    """
    with Path("/proc/thread-self/schedstat").open("rb", buffering=0) as schedule:
        delayed, began = int(schedule.read(128).split()[1]), time.monotonic_ns()
        with file.open("rb") as opened:
            data = opened.read()
            took = time.monotonic_ns() - began
        schedule.seek(0)
        took -= int(schedule.read(128).split()[1]) - delayed
    del data
    return took


class Stages(Dataset[Tensor]):
    """Map-style."""

    def __init__(self, count: int = 64, **stages: Any) -> None:
        self.count = count
        self.stages = {"sleep": 0.0, "cpu": 0.0, "file": None} | stages

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        return make_sample(**self.stages)


class BatchedStages(Stages):
    """All samples of a batch in one call."""

    def __getitems__(self, indices: list[int]) -> list[Tensor]:
        return [self[index] for index in indices]


class StreamedStages(IterableDataset[Tensor]):
    """Iterable, divided among workers."""

    def __init__(self, count: int = 64, **stages: Any) -> None:
        self.map = Stages(count, **stages)

    def __iter__(self) -> Iterator[Tensor]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, self.map.count, step):
            yield self.map[index]


class Collated:
    """A collate function that takes CPU time and says how much, in a further column."""

    def __init__(self, cpu: float) -> None:
        self.cpu = cpu

    def __call__(self, samples: list[Tensor]) -> tuple[Tensor, Tensor]:
        wall, used = time.monotonic_ns(), time.thread_time_ns()
        burn(self.cpu)
        batch = torch.stack(samples)
        wall, used = time.monotonic_ns() - wall, time.thread_time_ns() - used
        return batch, torch.tensor([wall, used])


class Served(Dataset[Tensor]):
    """Samples that come through a socket, each after so long; ``through`` names how it is read."""

    def __init__(self, seconds: float, through: str) -> None:
        self.seconds, self.through = seconds, through

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        near, far = socket.socketpair()
        late = threading.Timer(self.seconds, far.sendall, (b"x" * 100,))
        late.start()
        with near, far:
            if self.through == "file":
                with near.makefile("rb") as opened:
                    data = opened.read(100)
            else:
                data = near.recv(100)
            late.join()
        return torch.tensor(len(data))


class Chance(Dataset[Any]):
    """Samples that depend on every random state there is, and on the worker's own data set."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> tuple[int, float, float, float, str]:
        info = get_worker_info()
        name = type(info.dataset).__name__ if info else "none"
        chance = random.random(), np.random.random(), torch.rand(()).item()
        return (index, *chance, name)


class Letter:
    """Takes a while to be pickled and to be unpickled, and knows how long."""

    unpickled: list[int] = []  # noqa: RUF012 - filled in the process that reads

    def __init__(self, seconds: float, pickled_ns: int = 0) -> None:
        self.seconds = seconds
        self.pickled_ns = pickled_ns

    def __reduce__(self) -> Any:
        began = time.monotonic_ns()
        time.sleep(self.seconds)
        return _open_letter, (self.seconds, time.monotonic_ns() - began)


def _open_letter(seconds: float, pickled_ns: int) -> Letter:
    began = time.monotonic_ns()
    time.sleep(seconds)
    Letter.unpickled.append(time.monotonic_ns() - began)
    return Letter(seconds, pickled_ns)


class Letters(Dataset[Letter]):
    """One letter a sample."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Letter:
        return Letter(0.01)


def only(samples: list[Any]) -> Any:
    """Collate that takes the one sample as the batch."""
    return samples[0]


class Deadly(Dataset[Tensor]):
    """A worker ends by this signal, or raises, at sample 6."""

    def __init__(self, signal: int | None) -> None:
        self.signal = signal

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Tensor:
        if index == 6:
            if self.signal is None:
                raise ValueError("sample 6 is damaged")
            os.kill(os.getpid(), self.signal)
        time.sleep(0.01)
        return torch.tensor(index)


class Files(Dataset[Tensor]):
    """Whole files as samples; each says how many bytes its thread had to get from storage."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
        with self.paths[index].open("rb") as opened:
            opened.read()
        after = resource.getrusage(resource.RUSAGE_THREAD).ru_inblock
        return torch.tensor((after - before) * 512)
