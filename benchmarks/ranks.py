"""How much memory and time the traces of many ranks take, opened together as one folder.

Run it as ``python benchmarks/ranks.py [--ranks 16 256] [--megabytes 20]``. It writes one trace a
rank: a training loop with an all-reduce a step, for which the last rank is late. A process of its
own then prints ``workbench analyze --json FOLDER``; its peak memory and time are a row. The second
row of each number of ranks is the same from the caches of the first.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import trace_engine as engine

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STREAM = 20
LATE_US = 3_000
"""How much later than the others the last rank begins its all-reduce."""
BEGIN_US, END_US = 46_000, 49_900
"""An all-reduce within its step, on a rank that is in time."""


def write_ranks(folder: Path, ranks: int, megabytes: float) -> None:
    """One trace a rank, alike but for the rank and the beginning of its all-reduces."""
    steps: list[str] = []
    while sum(map(len, steps)) < megabytes * 1e6:
        steps.append("".join(engine._step(len(steps), stacks=False, arrows=False)))
    for rank in range(ranks):
        late = LATE_US if rank == ranks - 1 else 0
        told = f'"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {ranks}}},'
        with (folder / f"rank{rank}.trace.json").open("w", encoding="utf-8") as file:
            file.write(engine._HEADER.replace("{\n", "{\n  " + told + "\n", 1))
            for number, text in enumerate(steps):
                file.write(text)
                file.writelines(_all_reduce(number, late, ranks))
            file.write(engine._TAIL)


def _all_reduce(step: int, late: int, ranks: int) -> Iterator[str]:
    """The record of the framework, the launch, and the kernel that ends on all ranks at once."""
    start = 4_450_000_000_000 + step * engine.STEP_US
    correlation = engine.FIRST_CORRELATION * 1_000 + step
    told = (
        '"Collective name": "allreduce", "In msg nelems": 25000000, "Out msg nelems": 25000000, '
        f'"Group size": {ranks}, "dtype": "Float", "Process Group Name": "0", '
        f'"Process Group Ranks": "{list(range(ranks))}"'
    )
    at = start + BEGIN_US + late
    yield engine._event("cpu_op", "record_param_comms", 100, 102, at - 40, 30, told)
    joined = f'"cbid": 211, "correlation": {correlation}'
    yield engine._event("cuda_runtime", "cudaLaunchKernelExC", 100, 102, at - 30, 5, joined)
    args = f'"device": 0, "stream": {STREAM}, "correlation": {correlation}'
    yield engine._event("kernel", NCCL, 0, STREAM, at, END_US - BEGIN_US - late, args)


def analyse(folder: Path) -> dict[str, float]:
    """Analyse the folder in a process of its own; peak in MiB and times in seconds."""
    start = "from workbench.cli import main; main()"
    command = [sys.executable, "-c", start, "analyze", "--json", str(folder)]
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        done = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(done.pid, 0)
        wall = time.perf_counter() - begin
        done.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        document = json.load(out)
    if done.returncode or len(document["ranks"]) != len(list(folder.iterdir())):
        raise SystemExit(f"{' '.join(command)} did not tell of all ranks")
    found = document["straggler"]
    if found is None or found["rank"] != len(document["ranks"]) - 1:
        raise SystemExit(f"the late rank was not found: {found}")
    peak = used.ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    return {"cpu": used.ru_utime + used.ru_stime, "wall": wall, "peak": peak}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--megabytes", type=float, default=20)
    given = parser.parse_args()
    print("| ranks | text, MB | read from | peak MiB | CPU s | wall s |\n|---|---|---|---|---|---|")
    for ranks in given.ranks:
        with tempfile.TemporaryDirectory() as name:
            folder, cache = Path(name) / "traces", Path(name) / "cache"
            folder.mkdir()
            write_ranks(folder, ranks, given.megabytes)
            size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
            os.environ["WORKBENCH_CACHE"] = str(cache)
            for source in ("JSON", "caches"):
                took = analyse(folder)
                print(
                    f"| {ranks} | {size:.0f} | {source} | {took['peak']:.0f} | {took['cpu']:.0f} "
                    f"| {took['wall']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
