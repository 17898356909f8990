"""One rank of the benchmark of collectives: ``python -m workbench.parallel.collectives_worker F``.

It reads ``plan.json`` in the folder F, times every collective, and appends a line of JSON for each
to ``rank<N>.jsonl``: what is there stays when the time is over.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from workbench.parallel.collectives_plan import ELEMENT, WARM_UP, repetitions

COPIED_BYTES = 32 * 2**20
JOIN_S = 60


class Ranks(Protocol):
    """A back end that is up."""

    rank: int

    def prepare(self, kind: str, size: int) -> Callable[[], object]:
        """What runs one collective of this size and returns when this rank is done."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def close(self) -> None:
        """Leave."""


def main(folder: Path) -> None:
    """Measure what the plan says."""
    plan = json.loads((folder / "plan.json").read_text())
    os.environ["OMP_NUM_THREADS"] = str(plan["threads"])
    ranks = _start(plan, folder)
    with (folder / f"rank{ranks.rank}.jsonl").open("a", encoding="utf-8") as out:
        _say(out, {"copy_gb_s": _copy_rate(ranks)})
        for kind in plan["kinds"]:
            for size in plan["sizes"]:
                _say(out, _timed(ranks, kind, size))
        _say(out, {"done": True})
    ranks.close()


def _timed(ranks: Ranks, kind: str, size: int) -> dict[str, Any]:
    run = ranks.prepare(kind, size)
    for _ in range(min(WARM_UP, repetitions(size))):
        run()
    took = []
    for _ in range(repetitions(size)):
        ranks.barrier()
        begin = time.perf_counter_ns()
        run()
        took.append(time.perf_counter_ns() - begin)
    return {"collective": kind, "bytes": size, "ns": took}


def _copy_rate(ranks: Ranks) -> float:
    """GB/s that this rank copies in memory while all others do the same; the best of five."""
    import numpy as np

    source = np.ones(COPIED_BYTES // 8)
    target = np.zeros_like(source)
    best = None
    for _ in range(5):
        ranks.barrier()
        begin = time.perf_counter_ns()
        np.copyto(target, source)
        took = time.perf_counter_ns() - begin
        best = took if best is None else min(best, took)
    return COPIED_BYTES / (best or 1)


def _say(out: Any, line: dict[str, Any]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


def _start(plan: dict[str, Any], folder: Path) -> Ranks:
    if plan["backend"] == "mpi4py":
        return _Mpi()
    return _Torch(plan["backend"], plan["world_size"], folder)


class _Mpi:
    """MPI by mpi4py, without torch."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._world = MPI.COMM_WORLD
        self.rank = self._world.Get_rank()
        self._count = self._world.Get_size()

    def prepare(self, kind: str, size: int) -> Callable[[], object]:
        import numpy as np

        whole, part = elements(size, self._count)
        world = self._world
        if kind == "all_reduce":
            a, b = np.ones(whole, np.float32), np.empty(whole, np.float32)
            return lambda: world.Allreduce(a, b)
        if kind == "all_gather":
            a, b = np.ones(part, np.float32), np.empty(part * self._count, np.float32)
            return lambda: world.Allgather(a, b)
        if kind == "reduce_scatter":
            a, b = np.ones(part * self._count, np.float32), np.empty(part, np.float32)
            return lambda: world.Reduce_scatter_block(a, b)
        if kind == "all_to_all":
            a, b = (np.ones(part * self._count, np.float32) for _ in range(2))
            return lambda: world.Alltoall(a, b)
        a = np.ones(whole, np.float32)
        return lambda: world.Bcast(a, root=0)

    def barrier(self) -> None:
        self._world.Barrier()

    def close(self) -> None:
        self._world.Barrier()


class _Torch:
    """A back end of torch.distributed."""

    def __init__(self, backend: str, count: int, folder: Path) -> None:
        from datetime import timedelta

        import torch
        from torch import distributed

        from workbench.parallel.launched import launched

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self._torch, self._group, self._count = torch, distributed, count
        found = launched()
        self.rank = 0 if found is None else found.rank
        kind = {"nccl": "cuda", "xccl": "xpu"}.get(backend)
        self._device = torch.device("cpu") if kind is None else torch.device(kind, self.rank)
        if backend == "mpi":
            distributed.init_process_group("mpi")
        else:
            store = distributed.FileStore(  # type: ignore[attr-defined]
                str(folder / "store"), count
            )
            limit = timedelta(seconds=JOIN_S)
            distributed.init_process_group(
                backend, store=store, rank=self.rank, world_size=count, timeout=limit
            )
        self.rank = distributed.get_rank()

    def prepare(self, kind: str, size: int) -> Callable[[], object]:
        whole, part = elements(size, self._count)
        group = self._group

        def ones(count: int) -> Any:
            return self._torch.ones(count, device=self._device)

        if kind == "all_reduce":
            a = ones(whole)
            return self._whole(lambda: group.all_reduce(a))
        if kind == "all_gather":
            a, b = ones(part), ones(part * self._count)
            return self._whole(lambda: group.all_gather_into_tensor(b, a))
        if kind == "reduce_scatter":
            a, b = ones(part * self._count), ones(part)
            return self._whole(lambda: group.reduce_scatter_tensor(b, a))
        if kind == "all_to_all":
            a, b = ones(part * self._count), ones(part * self._count)
            return self._whole(lambda: group.all_to_all_single(b, a))
        a = ones(whole)
        return self._whole(lambda: group.broadcast(a, 0))

    def _whole(self, call: Callable[[], object]) -> Callable[[], object]:
        """On a device the call returns before the collective has run."""
        if self._device.type == "cpu":
            return call

        def run() -> None:
            call()
            self._torch.accelerator.synchronize()

        return run

    def barrier(self) -> None:
        self._group.barrier()

    def close(self) -> None:
        self._group.destroy_process_group()


def elements(size: int, count: int) -> tuple[int, int]:
    """Numbers in a buffer of this size, and in the part of it that each rank has."""
    whole = max(size // ELEMENT, 1)
    return whole, max(whole // count, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
