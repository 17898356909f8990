"""What a capture measured, from its phases."""

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import RunError
from workbench.parallel.launched import Launched
from workbench.profiling.active import Seen
from workbench.profiling.phases import CapturePlan, Phase, current_device
from workbench.profiling.rank_folder import rank_of_job, said_of
from workbench.profiling.schedule import Schedule
from workbench.profiling.writing import Measured
from workbench.recording.environment import dtype_costs
from workbench.recording.lead import lead_steps
from workbench.settings import Settings

_LEAST_BLOCK = 3
"""Fewer steps than this are not a block of their own."""


def gather(schedule: Schedule, seen: Seen, error: BaseException | None) -> Measured:
    """Step times, blocks and what must be said of a loop that ended, perhaps with an error."""
    import torch

    complete, planned = schedule.complete, schedule.plan.steps
    device = current_device()
    rank = rank_of_job()
    measured = Measured(
        record=schedule.record,
        effective={
            **seen.loader,
            "device": "cpu" if device is None else str(device),
            "threads": torch.get_num_threads(),
            **said_of(rank),
        },
        profiled_step_ns=_of(schedule.phases, "window")[0][:complete],
        samples_per_step=_samples(seen.loader, rank),
        garbage_collection=seen.garbage_collection,
        compilation=seen.compilation,
        load=seen.load,
        warnings=seen.warnings,
        labels=seen.labels,
        notes=schedule.notes,
        dtypes=dtype_costs({"device": "cpu" if device is None else str(device)}, Settings()),
    )
    _measure_blocks(measured, schedule.phases, seen)
    if complete < planned:
        measured.notes.append(
            f"the window holds {complete} complete steps of {planned} planned: it ended after step "
            f"{schedule.done}, and a step that was not complete is left out"
        )
    if rank is not None and "batch_size" in seen.loader and measured.samples_per_step is None:
        measured.notes.append(
            "samples per step are unknown: the loader's sampler does not say among how many of "
            f"the {rank.world_size} ranks the data is divided, as DistributedSampler does"
        )
    if error is not None:
        measured.notes.append(_end(error, schedule.done, seen))
    return measured


def _samples(loader: Mapping[str, Any], rank: Launched | None) -> float | None:
    """Of all ranks together; ranks that divide the model and not the data see the same ones."""
    size, replicas = loader.get("batch_size"), loader.get("data_replicas")
    if rank is None:
        replicas = 1
    return None if size is None or replicas is None else float(size * replicas)


def _end(error: BaseException, done: int, seen: Seen) -> str:
    ended = f"the loop ended with {type(error).__name__} in step {done}"
    return ended if seen.why is None else f"{ended}: {seen.why}"


def explain_nothing(
    done: int, plan: CapturePlan, seen: Seen, error: BaseException | None = None
) -> RunError:
    """Why a capture holds no complete step."""
    if error is not None and done < plan.end:
        return RunError(
            f"nothing was captured before the window had a whole step: {_end(error, done, seen)}"
        )
    if not done and seen.empty:
        return RunError(
            "nothing was captured, because the watched loader gave no batch: it is empty, or "
            "drop_last=True leaves out its only one."
        )
    if not done:
        return RunError(
            "nothing was captured, because no step was marked: call cap.step() at the end of every "
            "iteration, inside the loop."
        )
    return RunError(
        f"nothing was captured: warmup={plan.warmup} and one step need ≥ {plan.warmup + 1} "
        f"iterations (≥ {plan.end} for the whole window), and the loop ended after {done}. "
        "Run more iterations, or lower warmup and steps."
    )


def _measure_blocks(measured: Measured, phases: Sequence[Phase], seen: Seen) -> None:
    """Steps before and after the window; those after it are cut in two when they are alone."""
    from workbench.statistics.warmup import warmup_length

    before, before_waits = _of(phases, "before")
    after, after_waits = _of(phases, "after")
    lead = lead_steps(seen.loader)
    lead = lead if len(after) > 2 * lead else min(1, len(after))
    blocks, waits = _halves(after[lead:]), after_waits[lead:]
    warmup = warmup_length(before)
    if len(before) - warmup >= _LEAST_BLOCK:
        blocks, waits = [before, *blocks], before_waits + waits
        measured.warmup = warmup
    measured.blocks = blocks
    measured.input_ns = waits if seen.watches else []
    if not seen.watches:
        measured.notes.append(
            "waits for input were not measured without the profiler: in a loop of your own, "
            "cap.watch(loader) does that"
        )
    if not blocks:
        measured.notes.append(
            "step times without the profiler were not measured: the loop ended with the window. "
            "Let it run on, or raise warmup"
        )


def _halves(steps: list[int]) -> list[list[int]]:
    half = len(steps) // 2
    blocks = [steps[:half], steps[half:]] if half >= _LEAST_BLOCK else [steps]
    return [block for block in blocks if block]


def _of(phases: Sequence[Phase], name: str) -> tuple[list[int], list[Any]]:
    """Step times and waits of a phase; empty when the loop never reached it."""
    for phase in phases:
        if phase.name == name:
            return phase.durations_ns(), phase.waits
    return [], []
