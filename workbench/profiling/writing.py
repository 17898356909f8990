"""Put what was measured into a Run folder."""

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.machine.peaks import known_peaks
from workbench.parallel.launched import launched
from workbench.recording.environment import environment, now, seeds
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.recording.window import Window
from workbench.settings import Record, Settings
from workbench.store.names import safe_name
from workbench.store.record import RunRecord, Timings
from workbench.store.writing import new_run_folder
from workbench.version import version


@dataclass(kw_only=True)
class Measured:
    """Everything known about a run before it is written; lists grow while it is measured."""

    record: Record
    window: Window | None = None
    """The profiled window, once it is whole."""
    settings: Settings = field(default_factory=Settings)
    effective: dict[str, Any] = field(default_factory=dict)
    blocks: list[list[int]] = field(default_factory=list)
    """Step times without the profiler; warm-up is at the head of the first block."""
    input_ns: list[int] = field(default_factory=list)
    warmup: int = 0
    profiled_step_ns: list[int] = field(default_factory=list)
    samples_per_step: float | None = None
    garbage_collection: dict[str, Any] | None = None
    compilation: dict[str, Any] | None = None
    load: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    loader: LoaderRecorder | None = None
    replay_ns: list[int] = field(default_factory=list)
    loader_alone: dict[str, Any] | None = None
    input_checks: dict[str, Any] | None = None
    dtypes: list[dict[str, Any]] | None = None
    loss_scale: dict[str, Any] | None = None
    peak_memory: dict[str, int | None] | None = None
    loss: float | None = None
    losses: list[float | None] | None = None
    costs: list[dict[str, Any]] | None = None
    cost_step: dict[str, Any] | None = None

    def timings(self) -> Timings | None:
        """Step times for ``run.json``; ``None`` when nothing was measured without the profiler."""
        steps = [ns for block in self.blocks for ns in block]
        if len(steps) <= self.warmup:
            return None
        return Timings(
            step_ns=steps,
            input_ns=self.input_ns,
            warmup=self.warmup,
            blocks=[len(block) for block in self.blocks],
            profiled_step_ns=self.profiled_step_ns,
            replay_ns=self.replay_ns or None,
        )

    def overhead_ratio(self) -> float | None:
        """Median profiled step over median step of record."""
        timings = self.timings()
        if timings is None or not self.profiled_step_ns:
            return None
        record = statistics.median(timings.step_ns[timings.warmup :])
        return statistics.median(self.profiled_step_ns) / record if record > 0 else None


def write_run(target: Path, window: Window, measured: Measured, *, base: Path) -> Path:
    """Export the trace and write the Run to ``target``, or beside it; returns its folder.

    A relative ``target`` lies below ``base``, which was the current folder when the user named it;
    the loop may have changed to another one since. What is returned and said stays relative.
    """
    wanted = safe_name(target.name)
    with new_run_folder(base / target.parent, wanted) as new:
        trace = f"rank{_rank()}.trace.json.gz"
        window.export(new.path / trace)
        notes = list(measured.notes)
        loader = None
        if measured.loader is not None:
            loader = measured.loader.write(new.path, window.input_ranges)
            notes += measured.loader.probe.notes
        if new.name != wanted:
            notes.append(
                f"{wanted!r} was there already: this Run is called {new.name!r} "
                f"and lies in {target.parent / new.name}"
            )
        measured.notes = notes
        new.record = RunRecord(
            name=new.name,
            created=now(),
            workbench=version(),
            settings=measured.settings.to_json(),
            effective=measured.effective,
            record=measured.record.to_json(),
            environment=environment(),
            seeds=seeds(),
            timings=measured.timings(),
            overhead_ratio=measured.overhead_ratio(),
            samples_per_step=measured.samples_per_step,
            garbage_collection=measured.garbage_collection,
            compilation=measured.compilation,
            load=measured.load,
            warnings=measured.warnings + [f"Kineto: {text}" for text in window.messages],
            notes=notes,
            traces=[trace],
            labels=measured.labels,
            loader=loader,
            loader_alone=measured.loader_alone,
            input_checks=measured.input_checks,
            dtypes=measured.dtypes,
            loss_scale=measured.loss_scale,
            peak_memory=measured.peak_memory,
            loss=measured.loss,
            losses=measured.losses,
            peaks=known_peaks(str(measured.effective.get("device") or "cpu")),
            costs=measured.costs,
            cost_step=measured.cost_step,
        )
    if new.folder is None:
        raise AssertionError("the block above either publishes the Run or raises")
    return target.parent / new.name


def _rank() -> int:
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    found = launched()
    return 0 if found is None else found.rank
