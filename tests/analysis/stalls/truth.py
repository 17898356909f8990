"""Data whose every stage notes, by its own clocks, when it ran, on a processor or waiting for one.

So for any stretch in which a loop waited there is a truth that the probes had no part in.
"""

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from tests.analysis.stalls.loader import table
from workbench.store.loader import BATCH_COLUMNS, EPOCH_COLUMNS, WORKER_COLUMNS, LoaderRecords

STAGES = ("forget", "read", "sleep", "burn", "collate")
FIELDS = ("start", "end", "cpu", "delay")
"""Of each stage: instants on CLOCK_MONOTONIC, CPU time of the thread, time ready without one."""


class Clocked:
    """Notes one stage after the other, for the thread that made it.

    The file stays open: to find it for every stage would be most of what this thread computes.
    """

    def __init__(self) -> None:
        self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.rows: list[list[int]] = []
        self._before = self._now()

    def stage(self) -> None:
        """A stage ends here, where the last one ended it began."""
        now = self._now()
        before, self._before = self._before, now
        self.rows.append([before[0], now[0], now[1] - before[1], now[2] - before[2]])

    def _now(self) -> tuple[int, int, int]:
        delay = int(os.pread(self._file, 128, 0).split()[1])
        return time.monotonic_ns(), time.thread_time_ns(), delay

    def __del__(self) -> None:
        os.close(self._file)


def burn(seconds: float) -> None:
    """Use that much CPU time of this thread."""
    began = time.thread_time_ns()
    while time.thread_time_ns() - began < seconds * 1e9:
        sum(range(20_000))


def forget(file: Path) -> None:
    """Let a file leave the page cache, where its file system heeds the advice: that may block."""
    with file.open("rb", buffering=0) as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(file: Path) -> None:
    """Read all of a file."""
    with file.open("rb", buffering=0) as opened:
        opened.read()


class Known(Dataset[Tensor]):
    """Samples that read a file from storage, sleep, and compute, for a known time each."""

    def __init__(self, count: int, *, sleep: float = 0, burn: float = 0, file: Any = None) -> None:
        self.count, self.sleep, self.burn, self.file = count, sleep, burn, file

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        clock = Clocked()
        if self.file is not None:
            forget(self.file)
        clock.stage()
        if self.file is not None:
            read(self.file)
        clock.stage()
        if self.sleep:
            time.sleep(self.sleep)
        clock.stage()
        if self.burn:
            burn(self.burn)
        clock.stage()
        return torch.tensor(clock.rows)


class Collate:
    """Puts samples together after a known time of computing, sleep or reading; comes last."""

    def __init__(self, burn: float = 0, *, sleep: float = 0, file: Any = None) -> None:
        self.burn, self.sleep, self.file = burn, sleep, file

    def __call__(self, samples: list[Tensor]) -> Tensor:
        clock = Clocked()
        if self.file is not None:
            forget(self.file)
            read(self.file)
        if self.sleep:
            time.sleep(self.sleep)
        if self.burn:
            burn(self.burn)
        clock.stage()
        last = torch.zeros_like(samples[0])
        last[0] = torch.tensor(clock.rows[0])
        return torch.stack([*samples, last])


def true_parts(batch: Tensor, start: int, end: int) -> dict[str, float]:
    """What a wait from start to end was spent on, by the stages' own clocks."""
    found = dict.fromkeys(("storage", "decode", "collate", "oversubscription", "other"), 0.0)
    for number, sample in enumerate(batch.numpy().astype(np.float64)):
        whole = number == len(batch) - 1
        for stage, (a, b, cpu, delay) in zip(STAGES, sample, strict=False):
            inside = max(0.0, min(b, end) - max(a, start)) / max(b - a, 1.0)
            blocked = max(b - a - cpu - delay, 0.0)
            found["oversubscription"] += inside * delay
            if whole:
                found["collate"] += inside * (cpu + blocked)
                continue
            found["decode"] += inside * cpu
            found["storage" if stage == "read" else "other"] += inside * blocked
    return found


def held_parts(batch: Tensor, following: Tensor, end: int) -> dict[str, float]:
    """What its worker did with the next batch when this one was made and had not come.

    While that computes, the thread that hands this one over cannot: at most so much of the wait is
    the next batch's, and what of it is not is the hand-over's own work.
    """
    return true_parts(following, int(batch.numpy()[..., 1].max()), end)


def as_records(recorder: Any) -> LoaderRecords:
    """The tables of a Run, on CLOCK_MONOTONIC."""
    return LoaderRecords(
        batches=table(recorder.batches, BATCH_COLUMNS),
        workers=table(recorder.workers, WORKER_COLUMNS),
        epochs=table([asdict(epoch) for epoch in recorder.probe.epochs], EPOCH_COLUMNS),
        about={},
    )
