"""What the loader's probes add to a step whose input is samples of 1 ms each.

Run it as ``python benchmarks/loader_probes.py [--batches 1 8 32] [--epochs]``. A sample unpacks a
fixed text, which takes about 1 ms in one C call as decoding an image does. Blocks of batches with
and without probes take turns, and CPU time is compared, since other load on the machine moves wall
times by tens of percent. The step does nothing but load: a real one is longer, the share smaller.
``--epochs`` compares whole epochs over worker processes, start-up included; too rough to decide.
It fails when the probes add more than 2 %. A batch costs 10 to 60 µs however many samples it has,
depending on how much of the processor's cache the samples left to the probes.
"""

import argparse
import resource
import statistics
import sys
import time
import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from workbench.recording.loader.fetch import FetchProbe
from workbench.recording.loader.layout import Kind, read
from workbench.recording.loader.overhead import delivery_cost_ns, overhead
from workbench.recording.loader.reads import call_cost_ns
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.workload.shutdown import shut_down

SAMPLE_S = 0.001
MOST = 0.02
BLOCK = 10
"""Batches with probes, or without, before it is the others' turn."""
BATCHES = 40


class Packed(Dataset[Tensor]):
    """Samples that are unpacked for one millisecond."""

    def __init__(self, count: int, packed: bytes) -> None:
        self.count = count
        self.packed = packed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        zlib.decompress(self.packed)
        return torch.full((64,), index)


def packed_for(seconds: float) -> bytes:
    """A packed text that takes so long to unpack here."""
    text = np.random.default_rng(0).integers(0, 64, 1_000_000, dtype=np.uint8).tobytes()
    packed = zlib.compress(text, 1)
    times = []
    for _ in range(20):
        began = time.thread_time()
        zlib.decompress(packed)
        times.append(time.thread_time() - began)
    return zlib.compress(text[: int(len(text) * seconds / statistics.median(times))], 1)


def epoch(loader: Any, *, probed: bool) -> tuple[float, float | None]:
    """CPU seconds of an epoch, workers included, and the overhead the probes tell of themselves."""
    recorder = LoaderRecorder(on=probed)
    with recorder:
        probe = recorder.probe
        before = cpu_s()
        iterator = probe.iterate(loader, lambda: iter(loader))
        began = time.monotonic_ns()
        for _ in iterator:
            ended = time.monotonic_ns()
            probe.waited(began, ended)
            began = ended
        shut_down(iterator)
        used = cpu_s() - before
    told = overhead(recorder.batches)["overhead_share"] if probed else None
    return used, told


def cpu_s() -> float:
    """CPU seconds of this thread and of the worker processes that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + ended.ru_utime + ended.ru_stime


def interval(ratios: list[float]) -> tuple[float, float]:
    """95 % interval of the median, by resampling."""
    random = np.random.default_rng(0)
    picked = random.choice(ratios, (2000, len(ratios)))
    low, high = np.percentile(np.median(picked, axis=1), [2.5, 97.5])
    return float(low), float(high)


def paired(batch: int, packed: bytes, count: int) -> tuple[float, float]:
    """Median share that probes add to a batch loaded in this process, and what they tell of it.

    Blocks of batches take turns, for in a run every batch has probes, and finds their code in the
    processor's caches as the samples have left it.
    """
    from torch.utils.data import _DatasetKind, default_collate

    data = Packed(batch, packed)
    create: Any = _DatasetKind.create_fetcher
    plain, probed = (create(_DatasetKind.Map, data, True, default_collate, False) for _ in range(2))
    records: list[bytes] = []
    probe = FetchProbe(records.append, call_cost_ns())
    probe.attach(probed)

    def block(fetcher: Any) -> int:
        began = time.thread_time_ns()
        for number in range(BLOCK):
            fetcher.fetch(range(batch))
            probe.finish(number)
        return time.thread_time_ns() - began

    shares = []
    block(plain), block(probed)
    for number in range(max(20, count // BLOCK)):
        order = (plain, probed) if number % 2 else (probed, plain)
        found = {fetcher is probed: block(fetcher) for fetcher in order}
        shares.append(found[True] / found[False] - 1)
    rows = [row | {"worker": None} for row in read(b"".join(records))[Kind.FETCH]]
    return statistics.median(shares), overhead(rows)["overhead_parts"]["workers"] or 0.0


def epochs(packed: bytes, rounds: int) -> None:
    """Print a line for each number of workers."""
    batch = 16
    for workers in (0, 1, 2):
        ratios, plain = [], []
        data = Packed(batch * BATCHES, packed)
        for number in range(rounds + 1):
            loader = DataLoader(data, batch, num_workers=workers)
            order = (False, True) if number % 2 else (True, False)
            found = {probed: epoch(loader, probed=probed) for probed in order}
            if number:  # not the first use of everything
                ratios.append(found[True][0] / found[False][0] - 1)
                plain.append(found[False][0])
        low, high = interval(ratios)
        print(
            f"{workers} workers, {batch} samples of 1 ms a batch: "
            f"{1e3 * statistics.median(plain) / BATCHES:.2f} ms of CPU a batch, with probes "
            f"{statistics.median(ratios):+.2%} [{low:+.2%}, {high:+.2%}]"
        )


def main() -> int:
    """Print a line for each batch size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--epochs", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    packed, failed = packed_for(SAMPLE_S), False
    for batch in options.batches:
        share, told = paired(batch, packed, max(40, 4000 // batch))
        print(f"{batch} samples of 1 ms a batch: probes add {share:.2%}; they tell of {told:.2%}")
        failed |= share > MOST
    cost = delivery_cost_ns() / 1000
    print(f"the training process's own probes take {cost:.1f} µs a batch")
    if options.epochs:
        epochs(packed, options.rounds)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
