"""Writes the traces of a small job by hand: steps of compute and one all-reduce on every rank.

Times are microseconds from the beginning of a step. A rank computes from 100 on; the all-reduce
begins when it is ready and ends on every rank 100 after the last one has come.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.kineto import Kineto

STEP = 1000.0
READY = 100.0
TRANSFER = 100.0
BASE = 1_700_000_000_000_000_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def told(world: int, **rest: Any) -> dict[str, Any]:
    """What torch since 2.2 tells about an all-reduce of 4 MB."""
    return {
        "Collective name": "allreduce",
        "In msg nelems": 1_000_000,
        "Out msg nelems": 1_000_000,
        "Group size": world,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": str(list(range(world))),
        **rest,
    }


def job_trace(
    rank: int,
    compute: Sequence[float],
    *,
    host: Sequence[float] | None = None,
    steps: int = 3,
    base_ns: int = BASE,
    communicates: bool = True,
) -> Kineto:
    """The trace of one rank.

    Args:
        rank: Which.
        compute: How long every rank computes in a step.
        host: How long every rank's host delays its compute in a step.
        steps: How many steps.
        base_ns: The time base of this rank.
        communicates: Whether there is an all-reduce at all.
    """
    world = len(compute)
    delay = [0.0] * world if host is None else host
    ready = [READY + d + c for d, c in zip(delay, compute, strict=True)]
    end = max(ready) + TRANSFER
    made = Kineto(gpu=True, base_ns=base_ns)
    made.header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
    for step in range(steps):
        at = step * STEP
        begin = READY + delay[rank]
        made.step(step, at, STEP)
        made.launched(
            "gemm",
            call=(at + begin - 10, 5),
            kernel=(at + begin, compute[rank]),
            correlation=10 * step + 1,
        )
        if communicates:
            made.op("record_param_comms", at + begin, 30, **told(world))
            made.runtime("cudaLaunchKernel", at + begin + 5, 5, correlation=10 * step + 2)
            duration = end - ready[rank]
            made.kernel(
                ALL_REDUCE, at + ready[rank], duration, correlation=10 * step + 2, stream=20
            )
    return made


def write_job(folder: Path, compute: Sequence[float], **rest: Any) -> Path:
    """One file a rank."""
    for rank in range(len(compute)):
        job_trace(rank, compute, **rest).write(folder / f"rank{rank}.trace.json")
    return folder
