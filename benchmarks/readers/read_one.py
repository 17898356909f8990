"""Reads one trace with one reader, and prints what that took as a line of JSON.

``trace_engine.py`` starts it once for every reading, with the interpreter that has the reader: it
therefore imports nothing of ours unless asked to read with it.
"""

import gzip
import importlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

_SETTLING_S = 0.3
"""Threads that numpy's library starts spin for a moment, which is no part of the reading."""


def json_loads(path: Path) -> Callable[[], Any]:
    """The standard library: text to dictionaries, and nothing else."""
    opener = gzip.open if path.suffix == ".gz" else open

    def read() -> Any:
        with opener(path, "rb") as file:
            return json.loads(file.read())

    return read


def workbench(path: Path) -> Callable[[], Any]:
    """All columns."""
    from workbench import trace

    return lambda: trace.read(path)


def workbench_idle(path: Path) -> Callable[[], Any]:
    """All columns, the causes of idle time, and the table of kernels."""
    import pandas  # noqa: F401

    from benchmarks.analyses import causes, kernels
    from workbench import trace

    def read() -> Any:
        table = trace.read(path)
        return causes(table), kernels(table)

    return read


def hta(path: Path) -> Callable[[], Any]:
    """Holistic Trace Analysis: its table of events, all steps kept."""
    from hta.trace_analysis import TraceAnalysis

    return lambda: TraceAnalysis(trace_files={0: str(path)}, include_last_profiler_step=True)


def hta_idle(path: Path) -> Callable[[], Any]:
    """Holistic Trace Analysis: its table, its breakdown of idle time, and its kernels."""
    load = hta(path)

    def read() -> Any:
        analysis = load()
        return (
            analysis.get_idle_time_breakdown(ranks=[0], visualize=False),
            analysis.get_gpu_kernel_breakdown(visualize=False),
        )

    return read


def tensorboard(path: Path) -> Callable[[], Any]:
    """The TensorBoard plugin: what its loader makes of a file before a page can be shown."""
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    def read() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            data = RunProfileData.parse("worker0", None, str(path), folder)
            return RunGenerator("worker0", None, data).generate_run_profile()

    return read


def gpu_idle(path: Path) -> Callable[[], Any]:
    """gpu-idle: its answer."""
    analyze = importlib.import_module("analyzer").analyze
    return lambda: analyze(path)


READERS = (json_loads, workbench, workbench_idle, hta, hta_idle, tensorboard, gpu_idle)


def main() -> None:
    """Read the command line: the name of a reader, and a file."""
    name, path = sys.argv[1:]
    sys.path[:1] = []  # this folder
    try:
        read = next(each for each in READERS if each.__name__ == name)(Path(path))
    except ImportError as error:
        print(json.dumps({"missing": error.name}))
        return
    time.sleep(_SETTLING_S)
    wall, cpu = time.perf_counter(), _cpu()
    result = read()
    cpu, wall = _cpu() - cpu, time.perf_counter() - wall
    assert result is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak}))


def _cpu() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


if __name__ == "__main__":
    main()
