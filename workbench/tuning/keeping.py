"""Put what was measured on disk: the verification as JSON, each side as a Run."""

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.settings import Record, Settings
from workbench.tuning.trial import Trial

if TYPE_CHECKING:
    from workbench.run.run import Run
    from workbench.store.record import RunRecord
    from workbench.tuning.verification import Verification
    from workbench.workload import Workload

ENDING = ".verification.json"
PROFILED_STEPS = 5
"""Steps of a Run's own blocks: its step times are those of the fair measurement."""


def keep(parent: Path, name: str, found: "Verification") -> Path:
    """Write a verification, whole and over no other; returns its file."""
    text = json.dumps(found.to_json(), indent=1, allow_nan=False)
    parent.mkdir(parents=True, exist_ok=True)
    waiting = parent / f".{secrets.token_hex(4)}{ENDING}.partial"
    try:
        waiting.write_text(text, encoding="utf-8")
        return _placed(waiting, parent, name)
    finally:
        waiting.unlink(missing_ok=True)


def _placed(waiting: Path, parent: Path, name: str) -> Path:
    number = 1
    while True:
        place = parent / (f"{name}{ENDING}" if number == 1 else f"{name}-{number}{ENDING}")
        try:
            os.link(waiting, place)  # unlike a rename never over another file
        except FileExistsError:
            number += 1
        except OSError:  # a file system without links
            if not place.exists():
                waiting.replace(place)
                return place
            number += 1
        else:
            return place


def profiled(
    work: "Workload",
    settings: Settings,
    trial: Trial,
    *,
    record: Record,
    folder: Path,
    time_limit_s: float | None,
    turns: str,
    loss: float | None,
) -> "Run":
    """A Run with a profiled window, whose step times are those of a fair trial.

    Args:
        work: Model, data and step.
        settings: Those of the trial.
        trial: What was measured.
        record: What the profiler records.
        folder: Where the Run is kept.
        time_limit_s: Seconds for the profile.
        turns: Mark of the measurement that both sides belong to.
        loss: After as many samples as the other side has seen.
    """
    from workbench.profiling import profile

    run = profile(
        work,
        settings,
        steps=PROFILED_STEPS,
        record=record,
        folder=folder,
        time_limit_s=time_limit_s,
        progress=False,
    )
    return _with_times(run, trial, turns, loss)


def _with_times(run: "Run", trial: Trial, turns: str, loss: float | None) -> "Run":
    import msgspec

    from workbench.run.source import load
    from workbench.store.folder import read_record

    place = run.traces[0].parent
    record = read_record(place)
    if record.timings is None or not trial.blocks:
        return run
    own = record.timings
    warm_ns, warm_input = own.step_ns[: own.warmup], own.input_ns[: own.warmup]
    counts = [len(block.step_ns) for block in trial.blocks]
    timings = msgspec.structs.replace(
        own,
        step_ns=[*warm_ns, *(ns for block in trial.blocks for ns in block.step_ns)],
        input_ns=[*warm_input, *(ns for block in trial.blocks for ns in block.input_ns)],
        blocks=[own.warmup + counts[0], *counts[1:]],
        turns=turns,
    )
    note = "the step times of record were measured in turns with another setting"
    changed = msgspec.structs.replace(
        record,
        timings=timings,
        notes=[*record.notes, note],
        peak_memory={
            name: getattr(trial, name)
            for name in ("peak_rss_bytes", "workers_bytes", "device_peak_bytes")
        },
        loss=loss,
    )
    _rewritten(place, changed)
    return load(place)


def left_alone(run: "Run", kept: Path | None) -> None:
    """Say in a Run whose other side was not profiled where its verdict is."""
    import msgspec

    from workbench.store.folder import read_record

    place = run.traces[0].parent
    record = read_record(place)
    where = "was not kept" if kept is None else f"is in {kept.name}, beside this folder"
    note = f"the other side of this measurement was not profiled; what was found of both {where}"
    _rewritten(place, msgspec.structs.replace(record, notes=[*record.notes, note]))


def _rewritten(place: Path, record: "RunRecord") -> None:
    from workbench.store.record import RECORD_NAME, encode

    waiting = place / f".{RECORD_NAME}.partial"
    waiting.write_bytes(encode(record))
    waiting.replace(place / RECORD_NAME)
