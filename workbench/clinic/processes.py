"""Faults of worker processes: how they start, share processors, and hand batches over."""

import hashlib
import threading
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, get_worker_info

from workbench.clinic.training import BATCH, FEATURES, Rows, training
from workbench.clinic.work import burn_natively
from workbench.workload import Workload

START_S = 0.4
"""About what importing a large library, or opening a large index, takes."""
EPOCH = 12
"""Batches in a short epoch."""
THREADS = 8
"""What a library takes by itself on a machine with eight processors."""
HASHED_BYTES = 500_000
"""A quarter to half a millisecond of native code that runs beside Python."""
SLOW_S, QUICK_S = 0.003, 0.0002
SHORT_STEP_S = 0.01
"""Of a network that the quick worker alone can feed."""
TENSORS = 100
"""Tensors in a batch; 200 in the report that pinning is modelled on (pytorch/pytorch #16901)."""


class SlowStart:
    """A ``worker_init_fn`` that gets something large ready first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, worker: int) -> None:
        """Take the time."""
        time.sleep(self.seconds)


class Pooled(Rows):
    """Samples decoded by a native library with threads of its own: one per thread of torch."""

    def __getitem__(self, index: int) -> Any:
        """One row and its class, after all threads have done their part."""
        block = bytes(HASHED_BYTES)
        others = [
            threading.Thread(target=hashlib.sha256, args=(block,), daemon=True)
            for _ in range(torch.get_num_threads() - 1)
        ]
        for thread in others:
            thread.start()
        hashlib.sha256(block)
        for thread in others:
            thread.join()
        return super().__getitem__(index)


class Threads:
    """A ``worker_init_fn`` that gives each worker this many threads."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, worker: int) -> None:
        """Set the number of threads."""
        torch.set_num_threads(self.count)


class Uneven(Rows):
    """Worker 0 is slower than the others, as on a processor that something else keeps busy."""

    def __init__(self, seed: int, slow_s: float) -> None:
        super().__init__(seed)
        self.slow_s = slow_s

    def __getitem__(self, index: int) -> Any:
        """One row and its class, after the work."""
        info = get_worker_info()
        burn_natively(self.slow_s if info is not None and info.id == 0 else QUICK_S)
        return super().__getitem__(index)


class Pieces:
    """Collate into this many tensors, as a graph, or a table with many columns, has."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, samples: list[Any]) -> Any:
        """Tensors of shape (samples, 1), and the classes."""
        rows = torch.stack([row for row, _ in samples])
        labels = torch.stack([label for _, label in samples])
        if self.count <= 1:
            return rows, labels
        columns = rows.repeat(1, self.count // FEATURES + 1)[:, : self.count]
        return [column.clone().unsqueeze(1) for column in columns.T], labels


def startup_each_epoch(seed: int, scale: float) -> Workload:
    """Workers that take long to start are started again for every short epoch."""
    loader: DataLoader[Any] = DataLoader(
        Rows(seed, EPOCH * BATCH),
        BATCH,
        num_workers=1,
        worker_init_fn=SlowStart(START_S * scale),
        persistent_workers=scale == 0,
    )
    return training(loader, "start-up each epoch", seed)


def oversubscription(seed: int, scale: float) -> Workload:
    """Every worker has a pool of threads as if it had the machine for itself."""
    threads = max(1, round(THREADS * scale))
    loader: DataLoader[Any] = DataLoader(
        Pooled(seed), BATCH, num_workers=2, worker_init_fn=Threads(threads)
    )
    return training(loader, "oversubscription", seed, SHORT_STEP_S)


def one_slow_worker(seed: int, scale: float) -> Workload:
    """Batches are delivered in order, so the slowest worker sets the pace."""
    slow_s = QUICK_S + (SLOW_S - QUICK_S) * scale
    loader: DataLoader[Any] = DataLoader(Uneven(seed, slow_s), BATCH, num_workers=2)
    return training(loader, "one slow worker", seed, SHORT_STEP_S)


def many_small_tensors(seed: int, scale: float) -> Workload:
    """Each tensor of a batch is handed over by itself, and there are many."""
    loader: DataLoader[Any] = DataLoader(
        Rows(seed), BATCH, num_workers=1, collate_fn=Pieces(round(TENSORS * scale))
    )
    return training(loader, "many small tensors", seed)


def pinning_cost(seed: int, scale: float) -> Workload:
    """The same many tensors, each copied to page-locked memory by one thread."""
    loader: DataLoader[Any] = DataLoader(
        Rows(seed),
        BATCH,
        num_workers=1,
        collate_fn=Pieces(round(TENSORS * scale)),
        pin_memory=torch.accelerator.is_available(),
    )
    return training(loader, "pinning cost", seed)
