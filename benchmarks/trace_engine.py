"""How much time and memory reading a large trace takes, side by side with other readers.

    python benchmarks/trace_engine.py                         # the table of docs/performance.md
    python benchmarks/trace_engine.py --peers-at-gigabyte     # slow: minutes, 5 GB
    python benchmarks/trace_engine.py --trace my.json         # the same readers, on your own file

Every reading is a process of its own, and the readers take turns, because other load on the machine
moves times by tens of percent. CPU seconds count the reading, not the imports; peaks count the
process. Readers of others (HTA, torch-tb-profiler, gpu-idle) count where they are installed: here,
or in the environment whose interpreter ``--peers-python`` names.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

READ_ONE = Path(__file__).parent / "readers" / "read_one.py"
LABELS = {
    "workbench": "workbench",
    "json_loads": "json.loads",
    "workbench_idle": "workbench, idle and kernels",
    "hta": "HTA",
    "hta_idle": "HTA, idle and kernels",
    "tensorboard": "TensorBoard plugin's loader",
    "gpu_idle": "gpu-idle",
}
PEERS = ("hta", "hta_idle", "tensorboard", "gpu_idle")
KINDS = {"launches": {}, "stacks": {"stacks": True}, "arrows": {"arrows": True}}
"""What the traces hold: operators with shapes and kernels; Python functions too; many flows."""
STEP_US = 50_000
OPS_PER_STEP = 1200
STACK_DEPTH = 3
FIRST_CORRELATION = 100_000
"""As after a warm-up. HTA puts row numbers into the column of correlations, whose type must fit."""
Found = dict[str, float]


def generate(path: Path, megabytes: float, *, stacks: bool = False, arrows: bool = False) -> int:
    """Write a trace of a training loop in the layout of torch 2.4 and later; returns its events.

    Args:
        path: Where to.
        megabytes: Size, to a step.
        stacks: With Python functions around every operator.
        arrows: With many flows and short arguments, as traces without shapes are.
    """
    size, count, step = 0, 0, 0
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEADER)
        while size < megabytes * 1e6:
            texts = list(_step(step, stacks=stacks, arrows=arrows))
            text = "".join(texts)
            file.write(text)
            size += len(text)
            count += len(texts)
            step += 1
        file.write(_TAIL)
    return count + 1


def _step(step: int, *, stacks: bool, arrows: bool) -> Iterator[str]:
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
        args = (
            f'"External id": {ident}, "Record function id": 0, "Sequence number": {ident}, '
            f'"Fwd thread id": 0, "Ev Idx": {ident}'
        )
        if not arrows:
            args += (
                f', "Input Dims": [[{64 * (1 + i % 12)}, 1024], [1024, 512]], "Input type": '
                '["float", "float"], "Input Strides": [[1024, 1], [512, 1]], '
                '"Concrete Inputs": ["", ""]'
            )
        yield _event("cpu_op", f"aten::{_OPERATORS[i % 7]}", 100, 100 + i % 2, at, 30, args)
        args = f'"External id": {ident}, "cbid": 211, "correlation": {FIRST_CORRELATION + ident}'
        yield _event("cuda_runtime", "cudaLaunchKernel", 100, 100 + i % 2, at + 4, 5, args)
        args = (
            f'"External id": {ident}, "queued": 0, "device": 0, "context": 1, "stream": 7, '
            f'"correlation": {FIRST_CORRELATION + ident}, "registers per thread": 32, '
            '"shared memory": 0, '
            '"blocks per SM": 9.259259, "warps per SM": 37.037037, "grid": [1000, 1, 1], '
            '"block": [128, 1, 1], "est. achieved occupancy %": 58'
        )
        yield _event("kernel", _KERNELS[i % 5], 0, 7, at + 12, 25, args)
        for cat in ("ac2g", "fwdbwd") if arrows else ("ac2g",):
            for phase, pid, tid, moment in (("s", 100, 100, at + 4), ("f", 0, 7, at + 12)):
                yield (
                    f'\n  {{\n    "ph": "{phase}",\n    "id": {ident},\n    "pid": {pid},\n'
                    f'    "tid": {tid},\n    "ts": {moment}.500,\n    "cat": "{cat}",\n'
                    f'    "name": "{cat}",\n    "bp": "e"\n  }},'
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


def packed(path: Path) -> Path:
    """The file beside itself, as gzip."""
    target = path.with_name(path.name + ".gz")
    with path.open("rb") as plain, gzip.open(target, "wb", compresslevel=6) as file:
        shutil.copyfileobj(plain, file)
    return target


def measure(path: Path, readers: tuple[str, ...], rounds: int, peers: str) -> dict[str, Found]:
    """What each reader took, in turns: medians of times, and the largest peak in MiB."""
    taken: dict[str, list[Found]] = {reader: [] for reader in readers}
    for _ in range(rounds):
        for reader in readers:
            python = peers if reader in PEERS else sys.executable
            command = [python, str(READ_ONE), reader, str(path)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                print(f"{LABELS[reader]} failed:\n{done.stderr[-600:]}", file=sys.stderr)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            if "missing" not in found:
                taken[reader].append(found)
    return {
        reader: {
            "cpu": statistics.median(run["cpu"] for run in runs),
            "wall": statistics.median(run["wall"] for run in runs),
            "peak": max(run["peak"] for run in runs),
        }
        for reader, runs in taken.items()
        if runs
    }


def compare(name: str, path: Path, readers: tuple[str, ...], rounds: int, peers: str) -> None:
    """Print a row for each reader of one file."""
    found = measure(path, readers, rounds, peers)
    ours, text = found.get("workbench"), path.stat().st_size
    for reader in readers:
        if reader not in found:
            print(f"| {name} | {LABELS[reader]} | not installed | | | | |", flush=True)
            continue
        took = found[reader]
        row = f"| {name} | {LABELS[reader]} | {took['cpu']:.2f} | {took['wall']:.2f} "
        row += f"| {took['peak']:.0f} | "
        if ours is not None and reader != "workbench":
            base = found["workbench_idle"] if reader == "hta_idle" else ours
            row += f"{took['cpu'] / base['cpu']:.1f} | {took['peak'] / base['peak']:.1f} |"
        else:
            per_mb = "" if path.suffix == ".gz" else f"{took['cpu'] / text * 1e9:.1f} ms/MB"
            row += f"{per_mb} | |"
        print(row, flush=True)


def print_head() -> None:
    """The date, how busy the machine is, and the head of the table."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    print(
        f"\n{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {sys.version.split()[0]}, "
        f"{os.cpu_count()} processors, load {load}. CPU and peak count ours as 1; HTA with its "
        "analyses is compared to ours with the same.\n"
    )
    print("| trace | reader | CPU s | wall s | peak MiB | CPU, ours = 1 | peak, ours = 1 |")
    print("|---|---|---|---|---|---|---|")


def compare_small(folder: Path, rounds: int, peers: str) -> None:
    """Every reader at 10 and 107 MB, and json.loads for every kind of trace."""
    both: tuple[str, ...] = ("workbench", "json_loads")
    for size, kind in ((10, "launches"), (107, "launches"), (107, "stacks"), (107, "arrows")):
        path = folder / "trace.json"
        generate(path, size, **KINDS[kind])
        first = kind == "launches"
        readers = (*both, "workbench_idle", *PEERS) if first else both
        compare(f"{size} MB, {kind}", path, readers, rounds, peers)
        if first:
            compare(f"{size} MB, {kind}, gzip", packed(path), both, rounds, peers)


def compare_large(folder: Path, peers: str) -> None:
    """Ours alone at 1 and 2 GB."""
    path = folder / "trace.json"
    for size, kind in ((1000, "launches"), (1000, "stacks"), (2000, "launches")):
        generate(path, size, **KINDS[kind])
        compare(f"{size} MB, {kind}", path, ("workbench",), 2, peers)
        if (size, kind) == (1000, "launches"):
            compare(f"{size} MB, {kind}, gzip", packed(path), ("workbench",), 2, peers)


def compare_at_gigabyte(folder: Path, peers: str) -> None:
    """HTA and json.loads at 1 GB, once."""
    path = folder / "trace.json"
    generate(path, 1000)
    readers = ("workbench", "json_loads", "hta", "workbench_idle", "hta_idle")
    compare("1000 MB, launches", path, readers, 1, peers)


def print_import(rounds: int = 7) -> None:
    """The shortest time that ``import workbench`` adds to starting Python, without torch."""
    code = "import sys\nimport workbench\nassert 'torch' not in sys.modules"
    empty, whole = (min(_started(text) for _ in range(rounds)) for text in ("pass", code))
    print(f"\n`import workbench`: {whole - empty:.3f} s of wall time, torch not imported")


def _started(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="without the traces of 1 and 2 GB")
    parser.add_argument("--peers-python", default=sys.executable, metavar="PATH")
    parser.add_argument("--peers-at-gigabyte", action="store_true")
    parser.add_argument("--trace", type=Path, nargs="+", help="read these files instead")
    given = parser.parse_args()
    print_head()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.trace:
            for path in given.trace:
                readers = ("workbench", "json_loads", "workbench_idle", *PEERS)
                compare(path.name, path, readers, given.rounds, given.peers_python)
        elif given.peers_at_gigabyte:
            compare_at_gigabyte(folder, given.peers_python)
        else:
            compare_small(folder, given.rounds, given.peers_python)
            if not given.small:
                compare_large(folder, given.peers_python)
            print_import()


if __name__ == "__main__":
    main()
