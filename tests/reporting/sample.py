"""A small trace of a GPU that waits for data, and a measured Run around it."""

from pathlib import Path

import numpy as np

from tests.kineto import Kineto
from tests.store.records import record
from workbench.store.folder import read_record
from workbench.store.record import Timings
from workbench.store.writing import new_run_folder

STEPS = 8
STEP_US = 1000.0


def trace(path: Path, *, kernel: str = "sgemm_128x64_nn") -> Path:
    """Eight steps of 1 ms: 400 µs in the loader, then one kernel of 500 µs."""
    made = Kineto(gpu=True)
    for number in range(STEPS):
        at = number * STEP_US
        made.step(number, at, STEP_US)
        made.loader(at + 10, 400)
        made.op("aten::mm", at + 430, 60)
        made.launched(kernel, call=(at + 440, 10), kernel=(at + 460, 500), correlation=number + 1)
    return made.write(path)


def measured_run(parent: Path, name: str, *, step_ms: float, kernel: str = "sgemm") -> Path:
    """A Run folder with 80 steps of record in 8 blocks, 1 % of noise, and the trace above."""
    noise = np.random.default_rng(len(name)).normal(1, 0.01, 80)
    steps = [int(ns) for ns in step_ms * 1e6 * noise]
    timings = Timings(
        step_ns=steps,
        input_ns=[ns * 4 // 10 for ns in steps],
        warmup=0,
        blocks=[10] * 8,
        profiled_step_ns=steps[:8],
    )
    with new_run_folder(parent, name) as new:
        trace(new.path / "rank0.trace.json.gz", kernel=kernel)
        new.record = record(name=name, timings=timings, traces=["rank0.trace.json.gz"])
    assert new.folder is not None
    assert read_record(new.folder).name == name
    return new.folder
