"""Data that fails in the middle, each in its own way."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

Sample = tuple[Tensor, Tensor]
AT = 60
"""The sample that fails: in batches of 4 it is in the sixteenth, after a short capture's window."""
NO_ROOM = "unable to allocate shared memory(shm) for file </torch_12_34_5>: No space left on device"
"""What torch raises in a worker when /dev/shm is full."""


def sample() -> Sample:
    return torch.ones(4), torch.tensor(0)


class Failing(Dataset[Sample]):
    """Calls ``fail`` at sample ``at``."""

    def __init__(self, fail: Callable[[], object], at: int = AT, samples: int = 400) -> None:
        self.fail, self.at, self.samples = fail, at, samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Sample:
        if index == self.at:
            self.fail()
        return sample()


def raise_error() -> None:
    raise ValueError("sample 60 is damaged")


def die(number: int) -> Callable[[], object]:
    return lambda: os.kill(os.getpid(), number)


def leave() -> None:
    os._exit(3)


def hang() -> None:
    time.sleep(1000)


def hang_deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)


class Endless(IterableDataset[Sample]):
    """Never ends and has no length."""

    def __iter__(self) -> Iterator[Sample]:
        while True:
            yield sample()


class Streamed(IterableDataset[Sample]):
    """Eighty samples without a length, and what happens at their end."""

    def __init__(self, end: Callable[[], object] = bool) -> None:
        self.end = end

    def __iter__(self) -> Iterator[Sample]:
        for _ in range(80):
            yield sample()
        self.end()


class Unsendable:
    """Cannot be handed from one process to another, for this reason."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        raise self.error


class CollatedOnce:
    """A collate function that gives this instead of its twelfth batch."""

    def __init__(self, instead: Any) -> None:
        self.instead = instead
        self.batches = 0

    def __call__(self, samples: list[Sample]) -> Any:
        self.batches += 1
        if self.batches == 12:
            return self.instead
        return torch.stack([row for row, _ in samples]), torch.stack([row for _, row in samples])


class WithFile(Failing):
    """Holds an open file, which no process can send to another."""

    def __init__(self) -> None:
        super().__init__(bool)
        self.file = open(os.devnull)  # noqa: PTH123, SIM115 - that is the fault


class WithLock(Failing):
    """Holds a lock."""

    def __init__(self) -> None:
        super().__init__(bool)
        self.lock = threading.Lock()
