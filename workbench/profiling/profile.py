"""``wb.profile``: measure a workload without the profiler, then explain it with a short window."""

import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import ProfilerBusyError, SettingError, WorkloadError
from workbench.profiling.keeping import keeping
from workbench.profiling.memory import explain_out_of_memory
from workbench.profiling.writing import Measured, write_run
from workbench.recording.batch_checks import BatchChecks
from workbench.recording.bench import STEADY, Bench, Block
from workbench.recording.ceilings import Before, Ceilings
from workbench.recording.compilation import compile_counters
from workbench.recording.environment import dtype_costs
from workbench.recording.garbage import GarbageProbe
from workbench.recording.lead import lead_steps
from workbench.recording.limits import Limits
from workbench.recording.load import LoadProbe
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.recording.loop import Loop
from workbench.recording.ownership import claim, refuse_unfinished_start
from workbench.recording.peak_memory import MemoryProbe, larger
from workbench.recording.plan import plan_steps
from workbench.recording.progress import Progress
from workbench.recording.warned import WarningLog
from workbench.recording.window import Window, warm_up
from workbench.settings import Record, Settings, check_records
from workbench.store.names import as_folder, safe_name
from workbench.store.writing import check_writable

if TYPE_CHECKING:
    from workbench.run.run import Run
    from workbench.workload import Workload

RUNS = "runs"
_DEFAULT_RECORD = Record()


def profile(
    work: "Workload",
    settings: Settings | None = None,
    *,
    steps: int = 20,
    record: Record = _DEFAULT_RECORD,
    folder: str | Path | None = None,
    name: str | None = None,
    time_limit_s: float | None = 600,
    keep_training: bool = False,
    progress: bool = True,
) -> "Run":
    """Profile a workload and hand back a Run.

    Warm-up steps come first, then ``steps`` steps without the profiler, a window of at most 20
    under it, and ``steps`` more without it: the two unprofiled blocks give the step time of record
    and the noise of the machine, the window explains it. Afterwards everything is as it was.

    An error or an interrupt after the window does not lose it: the Run is written with what was
    measured until then, and the error says where it is.

    Args:
        work: Model, data and step.
        settings: What to change for this run; ``None`` runs it as it is.
        steps: Steps in each measured block.
        record: What the profiler records beside operators and kernels.
        folder: Where Runs are kept; ``runs`` below the current folder when left out.
        name: Name of the Run; the workload's when left out. A taken name gets a number.
        time_limit_s: Seconds after which everything is cancelled, a hung step or loader as well.
        keep_training: Leave weights and optimizer as the steps left them.
        progress: Show a progress bar.

    Raises:
        ProfilerBusyError: Another profiler is active in this process.
        RunError: The Run cannot be written.
        TimeLimitError: It took too long; nothing is left running.
        SettingError: A setting is invalid or cannot act on this workload.
        WorkloadError: The parts of the workload do not fit together.
    """
    _check(work, steps, time_limit_s)
    check_records(settings, record)
    _check_plain(keep_training, name)
    order = _Order(
        settings=settings or Settings(),
        record=record,
        steps=steps,
        time_limit_s=time_limit_s,
        keep_training=keep_training,
    )
    from workbench.workload.worker_death import worker_death_explained

    parent = as_folder(folder, RUNS)
    check_writable(parent)
    base = Path.cwd()  # a step may change to another folder
    refuse_unfinished_start()
    mine = claim("wb.profile")
    try:
        target = parent / safe_name(name or _name(work, order.settings))
        measured = Measured(record=order.record, settings=order.settings)
        with (
            keeping(target, measured, base=base),
            Progress(shown=progress, title=work.title) as bar,
            explain_out_of_memory(),
            worker_death_explained(),
        ):
            warm_up()
            window = _measure(work, order, bar, measured)
            measured.dtypes = dtype_costs(measured.effective, order.settings)
        written = write_run(target, window, measured, base=base)
    finally:
        mine.release()
    from workbench.run.source import load

    return load(written, base=base)


@dataclass(frozen=True, kw_only=True)
class _Order:
    """What was asked for."""

    settings: Settings
    record: Record
    steps: int
    time_limit_s: float | None
    keep_training: bool


def _measure(work: "Workload", order: _Order, bar: Progress, measured: Measured) -> Window:
    from workbench.workload import prepare

    began, compiled = time.monotonic(), compile_counters()
    with (
        Limits(order.time_limit_s, "wb.profile") as limits,
        WarningLog() as warned,
        GarbageProbe() as garbage,
        LoaderRecorder(on=order.record.loader) as loader,
        prepare(work, order.settings, keep_training=order.keep_training) as training,
    ):
        measured.loader, measured.effective = loader, training.effective
        measured.warnings = warned.found
        loop = Loop(training, limits, bar, loader.probe)
        checks = BatchChecks(training.effective)
        loop.look = checks.look
        bench = Bench(
            loop=loop, device=training.device, garbage=garbage, lead=lead_steps(training.effective)
        )
        ceilings = Ceilings(loop=loop, device=training.device, loader=training.effective)
        window = _record(bench, ceilings, order, measured, began)
        measured.input_checks = checks.to_json(batches_in_epoch=loop.epoch_length)
        measured.samples_per_step = training.samples_per_step
        measured.loss_scale = training.loss_scale()
        measured.notes[:0] = training.notes
        if loop.epoch_length is not None:
            measured.notes.append(
                f"an epoch has {loop.epoch_length} batches: {loop.steps} steps went through "
                f"{training.epochs} epochs; restarts of the loader are part of what is measured"
            )
    measured.garbage_collection = garbage.to_json()
    counted = compile_counters().since(compiled)
    measured.compilation = {**counted.to_json(), "functions": counted.recompiled(loop.starts)}
    return window


def _record(
    bench: Bench, ceilings: Ceilings, order: _Order, measured: Measured, began: float
) -> Window:
    """Warm-up, first block, window, second block; after each block what its ceilings are."""
    from workbench.statistics.warmup import warmup_length

    progress, kind = bench.loop.progress, bench.device.type
    progress.stage("warm-up")
    warmup = bench.warm_up()
    size = bench.pilot(Window(order.record, kind))
    if size is None:
        raise _own_profiler()
    limit = order.time_limit_s
    plan = plan_steps(
        steps=order.steps,
        step_ns=statistics.median(warmup.step_ns[-STEADY:]),
        bytes_per_step=size,
        lead=bench.lead,
        left_s=None if limit is None else max(began + limit - time.monotonic(), 0.0),
    )
    measured.notes += plan.notes
    progress.expect(2 * plan.block + plan.window + 3 * bench.lead)
    load = LoadProbe()
    progress.stage("measuring")
    before = _block(bench, plan.block, measured)
    ceilings.measure(_so_far(before, began, limit), last=False)
    progress.stage("profiling")
    window = Window(order.record, kind)
    measured.profiled_step_ns = bench.profile(window, plan.window)
    if window.gave_way:
        raise _own_profiler()
    measured.blocks = [warmup.step_ns + before.step_ns]
    measured.input_ns = warmup.input_ns + before.input_ns
    measured.warmup = max(len(warmup.step_ns), warmup_length(measured.blocks[0]))
    measured.window = window
    progress.stage("measuring again")
    after = _block(bench, plan.block, measured)
    measured.blocks.append(after.step_ns)
    measured.input_ns += after.input_ns
    measured.load = load.to_json()
    progress.stage("measuring the loader alone")
    ceilings.measure(_so_far(after, began, limit), last=True)
    measured.replay_ns, measured.loader_alone = ceilings.replay_ns, ceilings.loader_alone()
    measured.notes += ceilings.notes
    return window


def _block(bench: Bench, count: int, measured: Measured) -> Block:
    """A block without the profiler; what memory it held and its last loss stand beside it."""
    memory = MemoryProbe(bench.device)
    bench.loop.losses = []
    memory.start()
    block = bench.block(count)
    measured.peak_memory = larger(measured.peak_memory, memory.read())
    losses, bench.loop.losses = bench.loop.losses, None
    last = losses[-1] if losses else None
    measured.loss = float(last) if last is not None and last.numel() == 1 else None
    return block


def _so_far(block: Block, began: float, limit_s: float | None) -> Before:
    elapsed = time.monotonic() - began
    return Before(
        elapsed_ns=int(elapsed * 1e9),
        left_ns=None if limit_s is None else max(limit_s - elapsed, 0.0) * 1e9,
        step_ns=block.step_ns,
        input_ns=block.input_ns,
    )


def _check(work: Any, steps: Any, time_limit_s: Any) -> None:
    from workbench.workload import Workload

    if not isinstance(work, Workload):
        raise WorkloadError(
            f"wb.profile needs a Workload, not a {type(work).__name__}: "
            "wb.profile(wb.Workload(model, data, loss=..., optimizer=...))."
        )
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 2:
        raise SettingError(f"steps={steps!r} must be a whole number of at least 2.")
    if time_limit_s is not None and not (_is_number(time_limit_s) and time_limit_s > 0):
        raise SettingError(
            f"time_limit_s={time_limit_s!r} must be a positive number of seconds, or None for "
            "no limit."
        )


def _check_plain(keep_training: Any, name: Any) -> None:
    if not isinstance(keep_training, bool):
        raise SettingError(f"keep_training={keep_training!r} must be True or False.")
    if name is not None and not isinstance(name, str):
        raise SettingError(f"name={name!r} must be text, or left out.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(work: "Workload", settings: Settings) -> str:
    changes = "-".join(f"{name}={value}" for name, value in settings.changes().items())
    return f"{work.title}-{changes}" if changes else work.title


def _own_profiler() -> ProfilerBusyError:
    return ProfilerBusyError(
        "a step of this workload starts a torch profiler of its own, and two at once empty each "
        "other: take it out of the step, or export its trace and open that with wb.open(...)."
    )
