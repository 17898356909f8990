"""A small trace of a GPU that waits for data, and a measured Run around it."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.kineto import Kineto
from tests.store.records import record
from workbench.store.columns import write_columns
from workbench.store.folder import read_record
from workbench.store.loader import BATCH_COLUMNS, LOADER_FILE
from workbench.store.record import Timings
from workbench.store.writing import new_run_folder

STEPS = 8
STEP_US = 1000.0
US = 1000
BASE_NS = 1_700_000_000_000_000_000
"""Where the clock of a trace begins, as ``Kineto`` writes it."""


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


def loader_records(folder: Path) -> None:
    """What the loader did for the trace above: two epochs of four batches by one worker.

    Of the 400 µs that the loop waits, its batch is decoded for 250, put together for 80, and on its
    way for the rest. The first epoch is cold.
    """
    rows: list[dict[str, Any]] = []
    for number in range(STEPS):
        wait, epoch = BASE_NS + round((number * STEP_US + 10) * US), number // 4
        rows.append(
            {
                "loader": 0,
                "stream": 0,
                "epoch": epoch,
                "batch": number % 4,
                "step": number,
                "worker": 0,
                "samples": 4,
                "failed": False,
                "wait_start_ns": wait + 1 * US,
                "wait_ns": 398 * US,
                "fetch_start_ns": wait - (400 if epoch == 0 else 0) * US,
                "fetch_ns": (730 if epoch == 0 else 330) * US,
                "fetch_run_delay_ns": 0,
                "storage_bytes": 4_000_000 if epoch == 0 else 0,
                "samples_ns": (650 if epoch == 0 else 250) * US,
                "samples_cpu_ns": 250 * US,
                "looked_ns": (650 if epoch == 0 else 250) * US,
                "looked_cpu_ns": 250 * US,
                "looked_read_ns": (400 if epoch == 0 else 0) * US,
                "collate_start_ns": wait + 250 * US,
                "collate_ns": 80 * US,
                "collate_cpu_ns": 80 * US,
                "received_ns": wait + 395 * US,
            }
        )
    starts = [
        {"loader": 0, "stream": 0, "epoch": e, "workers": 1, "detail": "all", "first_step": 4 * e}
        | {"start_ns": BASE_NS + 4 * e * round(STEP_US) * US - 500 * US, "iter_ns": 10 * US}
        for e in (0, 1)
    ]
    write_columns(folder / LOADER_FILE, rows, BATCH_COLUMNS, {"epochs": starts, "workers": []})


def measured_run(
    parent: Path, name: str, *, step_ms: float, kernel: str = "sgemm", loader: bool = False
) -> Path:
    """A Run folder with 80 steps of record in 8 blocks, 1 % of noise, and the trace above.

    With ``loader`` it also holds what the loader did, and both ceilings of the loop.
    """
    noise = np.random.default_rng(len(name)).normal(1, 0.01, 80)
    steps = [int(ns) for ns in step_ms * 1e6 * noise]
    timings = Timings(
        step_ns=steps,
        input_ns=[ns * 4 // 10 for ns in steps],
        warmup=0,
        blocks=[10] * 8,
        profiled_step_ns=steps[:8],
        replay_ns=[ns * 6 // 10 for ns in steps[:20]] if loader else None,
    )
    alone: dict[str, Any] = {"batches": 20, "batches_per_s": 800.0, "samples_per_s": 3200.0}
    with new_run_folder(parent, name) as new:
        trace(new.path / "rank0.trace.json.gz", kernel=kernel)
        if loader:
            loader_records(new.path)
        new.record = record(
            name=name,
            timings=timings,
            traces=["rank0.trace.json.gz"],
            loader_alone=alone if loader else None,
        )
    assert new.folder is not None
    assert read_record(new.folder).name == name
    return new.folder
