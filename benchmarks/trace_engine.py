"""How much time and memory reading a large trace takes, side by side with json.loads.

Run it as ``python benchmarks/trace_engine.py [--sizes 10 107] [--stacks] [--rounds 3]``. Every
reading is a process of its own, and the readers take turns, because other load on the machine moves
times by tens of percent. CPU seconds count the reading, not the imports; peaks count the process.
"""

import argparse
import gzip
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

STEP_US = 50_000
OPS_PER_STEP = 1200
STACK_DEPTH = 3


def generate(path: Path, megabytes: float, *, stacks: bool) -> int:
    """Write a trace of a training loop in the layout of torch 2.4 and later; returns its events."""
    size, count, step = 0, 0, 0
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEADER)
        while size < megabytes * 1e6:
            texts = list(_step(step, stacks=stacks))
            text = "".join(texts)
            file.write(text)
            size += len(text)
            count += len(texts)
            step += 1
        file.write(_TAIL)
    return count + 1


def _step(step: int, *, stacks: bool) -> Iterator[str]:
    """One step: operators with launches and kernels, flows between them, perhaps Python frames."""
    start = 4_450_000_000_000 + step * STEP_US
    yield _event("user_annotation", f"ProfilerStep#{step}", 100, 100, start, STEP_US - 20, "")
    for i in range(OPS_PER_STEP):
        ident = step * OPS_PER_STEP + i
        at = start + i * STEP_US // OPS_PER_STEP
        if stacks:
            for depth in range(STACK_DEPTH):
                python = STACK_DEPTH * ident + depth
                args = f'"Python parent id": {python - 1}, "Python id": {python}, "Ev Idx": {ident}'
                name = f"torch/nn/modules/module.py({1700 + depth}): _call_impl"
                yield _event("python_function", name, 100, 100, at, 38, args)
        width = 64 * (1 + i % 12)
        args = (
            f'"External id": {ident}, "Record function id": 0, "Sequence number": {ident}, '
            f'"Fwd thread id": 0, "Ev Idx": {ident}, "Input Dims": [[{width}, 1024], [1024, 512]], '
            '"Input type": ["float", "float"], "Input Strides": [[1024, 1], [512, 1]], '
            '"Concrete Inputs": ["", ""]'
        )
        yield _event("cpu_op", f"aten::{_OPERATORS[i % 7]}", 100, 100 + i % 2, at, 30, args)
        args = f'"External id": {ident}, "cbid": 211, "correlation": {ident}'
        yield _event("cuda_runtime", "cudaLaunchKernel", 100, 100 + i % 2, at + 4, 5, args)
        args = (
            f'"External id": {ident}, "queued": 0, "device": 0, "context": 1, "stream": 7, '
            f'"correlation": {ident}, "registers per thread": 32, "shared memory": 0, '
            '"blocks per SM": 9.259259, "warps per SM": 37.037037, "grid": [1000, 1, 1], '
            '"block": [128, 1, 1], "est. achieved occupancy %": 58'
        )
        yield _event("kernel", _KERNELS[i % 5], 0, 7, at + 12, 25, args)
        for phase, pid, tid, moment in (("s", 100, 100, at + 4), ("f", 0, 7, at + 12)):
            yield (
                f'\n  {{\n    "ph": "{phase}",\n    "id": {ident},\n    "pid": {pid},\n'
                f'    "tid": {tid},\n    "ts": {moment}.500,\n    "cat": "ac2g",\n'
                '    "name": "ac2g",\n    "bp": "e"\n  },'
            )


def _event(cat: str, name: str, pid: int, tid: int, ts: int, dur: int, args: str) -> str:  # noqa: PLR0917
    return (
        f'\n  {{\n    "ph": "X",\n    "cat": "{cat}",\n    "name": "{name}",\n    "pid": {pid},\n'
        f'    "tid": {tid},\n    "ts": {ts}.{ts % 1000:03d},\n    "dur": {dur}.125\n    ,\n'
        f'    "args": {{\n      {args}\n    }}\n  }},'
    )


_OPERATORS = ("mm", "add_", "relu", "native_layer_norm", "view", "empty", "copy_")
_KERNELS = tuple(
    f"void at::native::vectorized_elementwise_kernel<{i}, at::native::FillFunctor<float>, "
    "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)"
    for i in range(5)
)
_HEADER = (
    '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, '
    '"name": "NVIDIA A100", "totalGlobalMem": 42297524224, "computeMajor": 8, '
    '"computeMinor": 0\n    }\n  ],\n  "baseTimeNanoseconds": 1700000000000000000,\n'
    '  "displayTimeUnit": "ms",\n  "traceEvents": ['
)
_TAIL = (
    '\n  {\n    "ph": "i",\n    "s": "g",\n    "name": "Record Window End",\n    "pid": "",\n'
    '    "tid": "",\n    "ts": 4450000000000.000\n  }\n  ],\n  "traceName": "benchmark"\n}\n'
)


def read_once(reader: str, path: Path) -> None:
    """Read a file in this process, and print CPU seconds and peak memory as JSON."""
    if reader == "json.loads":
        opener = gzip.open if path.suffix == ".gz" else open
        begin = time.process_time()
        with opener(path, "rb") as file:
            events = len(json.loads(file.read())["traceEvents"])
    else:
        from workbench import trace

        begin = time.process_time()
        events = len(trace.read(path).events)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "events": events}))


def measure(path: Path, readers: list[str], rounds: int) -> dict[str, tuple[float, float]]:
    """Median CPU seconds and largest peak in MiB of each reader, in turns."""
    taken: dict[str, list[dict[str, float]]] = {reader: [] for reader in readers}
    for _ in range(rounds):
        for reader in readers:
            command = [sys.executable, __file__, "--read", reader, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            taken[reader].append(json.loads(done.stdout))
    return {
        reader: (statistics.median(r["seconds"] for r in runs), max(r["peak"] for r in runs))
        for reader, runs in taken.items()
    }


def compare(sizes: list[float], rounds: int, *, stacks: bool, largest_json: float) -> None:
    """Print a table for traces of the given sizes in MB."""
    print(
        f"{'MB':>6} {'file':8} {'reader':12} {'CPU s':>8} {'peak MiB':>9}  compared to json.loads"
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / "trace.json"
            generate(path, size, stacks=stacks)
            packed = Path(folder) / "trace.json.gz"
            with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as file:
                shutil.copyfileobj(plain, file)
            readers = ["workbench"] + ["json.loads"] * (size <= largest_json)
            for kind in (path, packed):
                found = measure(kind, readers, rounds)
                for reader, (seconds, peak) in found.items():
                    line = f"{size:6g} {kind.suffix[1:]:8} {reader:12} {seconds:8.2f} {peak:9.0f}"
                    if "json.loads" in found and reader != "json.loads":
                        other = found["json.loads"]
                        line += (
                            f"  {seconds / other[0]:.2f} of CPU, {peak / other[1]:.2f} of memory"
                        )
                    print(line, flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=float, nargs="+", default=[10, 107])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stacks", action="store_true", help="with Python stack records")
    parser.add_argument("--largest-json", type=float, default=250, help="MB; json.loads needs ~5x")
    parser.add_argument("--read", nargs=2, metavar=("READER", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read_once(given.read[0], Path(given.read[1]))
    else:
        compare(given.sizes, given.rounds, stacks=given.stacks, largest_json=given.largest_json)


if __name__ == "__main__":
    main()
