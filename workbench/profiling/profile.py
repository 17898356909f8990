"""``wb.profile``: measure a workload without the profiler, then explain it with a short window."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import SettingError, WorkloadError
from workbench.profiling.keeping import keeping
from workbench.profiling.measuring import Order, measure
from workbench.profiling.memory import explain_out_of_memory
from workbench.profiling.ranks import profile_ranks
from workbench.profiling.writing import Measured, write_run
from workbench.recording.environment import dtype_costs
from workbench.recording.ownership import claim, refuse_unfinished_start
from workbench.recording.progress import Progress
from workbench.recording.window import warm_up
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
    order = Order(
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
            explain_out_of_memory(work, order.settings),
            worker_death_explained(),
        ):
            if order.settings.ranks is not None:
                written = profile_ranks(work, order, bar, target, base=base)
            else:
                written = _profile_here(work, order, bar, measured, target=target, base=base)
    finally:
        mine.release()
    from workbench.run.source import load

    return load(written, base=base)


def _profile_here(
    work: "Workload",
    order: Order,
    bar: Progress,
    measured: Measured,
    *,
    target: Path,
    base: Path,
) -> Path:
    from workbench.workload import prepare

    warm_up()
    prepared = prepare(work, order.settings, keep_training=order.keep_training)
    window = measure(prepared, order, bar, measured, work=work)
    measured.dtypes = dtype_costs(measured.effective, order.settings)
    return write_run(target, window, measured, base=base)


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
