"""The measured parts of a profile, one after the other: blocks, the window, ceilings."""

import itertools
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import ProfilerBusyError
from workbench.profiling.writing import Measured
from workbench.recording.batch_checks import BatchChecks
from workbench.recording.bench import STEADY, Bench, Block, alone
from workbench.recording.ceilings import Before, Ceilings
from workbench.recording.compilation import compile_counters
from workbench.recording.garbage import GarbageProbe
from workbench.recording.lead import lead_steps
from workbench.recording.limits import Limits
from workbench.recording.load import LoadProbe
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.recording.loop import Loop
from workbench.recording.peak_memory import MemoryProbe, larger
from workbench.recording.plan import Plan, plan_steps
from workbench.recording.progress import Progress
from workbench.recording.warned import WarningLog
from workbench.recording.window import Window
from workbench.settings import Record, Settings

if TYPE_CHECKING:
    from workbench.workload import Workload
    from workbench.workload.training import Training


_RANKS = (
    "ranks wait for one another in every step, so that none runs one more for it; work is counted "
    "from the shapes in the trace"
)


_MEASURED = itertools.count()
"""Counts the Runs of this process: what one took, the process may hold during the next."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was asked for."""

    settings: Settings
    record: Record
    steps: int
    time_limit_s: float | None
    keep_training: bool


def measure(
    prepared: AbstractContextManager["Training"],
    order: Order,
    bar: Progress,
    measured: Measured,
    *,
    agree: Callable[[Any], Any] | None = None,
    work: "Workload | None" = None,
    last: Callable[["Training"], None] | None = None,
) -> Window:
    """Run and record one prepared workload; ``measured`` grows by what was found.

    Args:
        prepared: Gives the training when it is entered.
        order: What was asked for.
        bar: Is told of every step.
        measured: What will be written.
        agree: Among ranks, turns what one has decided into what all do. Ceilings are not measured
            then: each rank would wait for the others.
        work: The workload, where its training is kept and one more step must leave no mark.
        last: Is given the training before it ends.
    """
    began, compiled, earlier = time.monotonic(), compile_counters(), next(_MEASURED)
    with (
        Limits(order.time_limit_s, "wb.profile") as limits,
        WarningLog() as warned,
        GarbageProbe() as garbage,
        LoaderRecorder(on=order.record.loader) as loader,
        prepared as training,
    ):
        measured.loader, measured.effective = loader, training.effective
        measured.warnings = warned.found
        loop = Loop(training, limits, bar, loader.probe)
        checks = BatchChecks(training.effective)
        loop.look = checks.look
        bench = Bench(
            loop=loop,
            device=training.device,
            garbage=garbage,
            lead=lead_steps(training.effective),
            agree=agree or alone,
        )
        ceilings = None
        if agree is None:
            ceilings = Ceilings(
                loop=loop,
                device=training.device,
                loader=training.effective,
                keeps_one=order.record.shapes,
            )
        window = _record(bench, ceilings, order, measured, began)
        measured.input_checks = checks.to_json(batches_in_epoch=loop.epoch_length)
        measured.losses = loop.history()
        measured.samples_per_step = training.samples_per_step
        measured.loss_scale = training.loss_scale()
        measured.notes[:0] = training.notes
        if order.record.shapes:
            _record_costs(
                training=training,
                loop=loop,
                ceilings=ceilings,
                order=order,
                measured=measured,
                work=work,
                began=began,
            )
        if last is not None:
            last(training)
        _tell_epochs(loop, training.epochs, measured)
    if measured.peak_memory is not None:
        measured.peak_memory = {**measured.peak_memory, "runs_before": earlier}
    measured.garbage_collection = garbage.to_json()
    counted = compile_counters().since(compiled)
    measured.compilation = {**counted.to_json(), "functions": counted.recompiled(loop.starts)}
    return window


def _record(
    bench: Bench, ceilings: Ceilings | None, order: Order, measured: Measured, began: float
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
    planned = plan_steps(
        steps=order.steps,
        step_ns=statistics.median(warmup.step_ns[-STEADY:]),
        bytes_per_step=size,
        lead=bench.lead,
        left_s=None if limit is None else max(began + limit - time.monotonic(), 0.0),
    )
    plan = Plan(**bench.agree(asdict(planned)))
    measured.notes += plan.notes
    progress.expect(2 * plan.block + plan.window + 3 * bench.lead)
    load = LoadProbe()
    progress.stage("measuring")
    before = _block(bench, plan.block, measured)
    if ceilings is not None:
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
    if ceilings is not None:
        progress.stage("measuring the loader alone")
        ceilings.measure(_so_far(after, began, limit), last=True)
        measured.replay_ns, measured.loader_alone = ceilings.replay_ns, ceilings.loader_alone()
        measured.notes += ceilings.notes
    return window


def _record_costs(
    *,
    training: "Training",
    loop: Loop,
    ceilings: Ceilings | None,
    order: Order,
    measured: Measured,
    work: "Workload | None",
    began: float,
) -> None:
    """One more step, for what its operators are asked."""
    from workbench.profiling.cost_step import record_costs

    if ceilings is None:
        measured.cost_step = {"reason": _RANKS}
        return
    loop.progress.stage("counting the work of a step")
    limit, timings = order.time_limit_s, measured.timings()
    steady = [] if timings is None else timings.step_ns[timings.warmup :]
    record_costs(
        training,
        ceilings.spare,
        measured,
        work=work if order.keep_training else None,
        step_ns=statistics.median(steady) if steady else 0.0,
        left_s=None if limit is None else max(began + limit - time.monotonic(), 0.0),
        serve=loop.serve,
    )


def _tell_epochs(loop: Loop, epochs: int, measured: Measured) -> None:
    if loop.epoch_length is None:
        return
    whole = f"{epochs} whole epoch{'s' if epochs > 1 else ''}"
    measured.notes.append(
        f"an epoch has {loop.epoch_length} batch{'es' if loop.epoch_length > 1 else ''}: "
        f"{loop.steps} steps went through {whole}; restarts of the loader are part of what is "
        "measured"
    )


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


def _own_profiler() -> ProfilerBusyError:
    return ProfilerBusyError(
        "a step of this workload starts a torch profiler of its own, and two at once empty each "
        "other: take it out of the step, or export its trace and open that with wb.open(...)."
    )
