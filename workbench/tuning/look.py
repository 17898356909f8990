"""What a search has to know of a loop before it tries anything: how long, how large, where to."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import TimeLimitError, WorkloadError
from workbench.recording.progress import Progress
from workbench.settings import Record, Settings
from workbench.tuning.block import LEAST_STEPS, Measuring, set_up
from workbench.tuning.fair import fair_blocks
from workbench.tuning.trial import FairRuns, Trial

if TYPE_CHECKING:
    from workbench.run.run import Run
    from workbench.workload import Workload

PROFILED_STEPS = 5
"""Of each measured block of a profile: the findings come from its window."""
FIRST_STEPS = 5
FIRST_BLOCKS = 2
"""Of the loop against itself: two and two are the least that tell its noise."""
LEAST_NOISE = 0.01
"""No machine repeats itself better; also where nothing is known (own choice)."""
KEPT_FACTS = (
    *("device", "step", "precision", "compile", "channels_last", "optimizer", "optimizers"),
    *("data", "batch_size", "workers", "prefetch_factor", "pin_memory", "persistent_workers"),
    *("drop_last", "batched_fetch", "in_order", "sampler", "batch_sampler", "threads"),
    *("non_blocking", "matmul_precision", "attention", "iterable", "interop_threads"),
    *("multiprocessing_context", "worker_threads", "schedulers", "accumulation"),
)


def first_look(
    work: "Workload", bar: Progress, warmed: MutableMapping[Settings, float], limit_s: float
) -> dict[str, Any]:
    """The loop as it is against itself: step time, noise, memory, and what a batch is.

    Raises:
        WorkloadError: It fails as it is.
        TimeLimitError: There was no time for a single block.
        KeyboardInterrupt: After an interrupt.
    """
    from workbench.workload.workload import is_data_set

    held = resident_bytes()
    bytes_, kind = _batch(work, bar, limit_s)
    runs = fair_blocks(
        work,
        [None, None],
        steps=FIRST_STEPS,
        blocks=FIRST_BLOCKS,
        time_limit_s=limit_s,
        progress=bar,
        warmed=warmed,
    )
    trial = runs.trials[0]
    if runs.ended == "interrupted":
        raise KeyboardInterrupt
    _check(trial)
    peak = trial.peak_rss_bytes
    return {
        "step_ns": trial.step_ns,
        "sample_ns": trial.sample_ns,
        "noise": _noise(runs),
        "input_share": input_share(trial),
        "batch_bytes": bytes_,
        "batch_kind": kind,
        "source": "dataset" if is_data_set(work.data, work.batch_size) else "loader",
        "has_loss": work.loss is not None,
        "memory_bytes": memory_bytes(trial),
        "grown_bytes": None if peak is None or held is None else max(0, peak - held),
        "device_bytes": trial.device_peak_bytes,
        "loss": last_loss(trial),
        "effective": known_facts(trial.effective),
        "seconds": runs.elapsed_s,
    }


def _check(trial: Trial) -> None:
    if trial.blocks:
        return
    if trial.outcome in {"timed_out", "not_measured"}:
        raise TimeLimitError(
            "the budget was over before the loop had been measured once as it is: give more, such "
            "as budget='5 min'."
        )
    raise WorkloadError(f"the loop fails without any setting: {trial.reason}")


def known_facts(effective: Mapping[str, Any]) -> dict[str, Any]:
    """What of a run's effective values is kept."""
    return {name: effective[name] for name in KEPT_FACTS if name in effective}


def input_share(trial: Trial) -> float | None:
    """Part of all measured steps that waited for a batch."""
    waits = sum(ns for block in trial.blocks for ns in block.input_ns)
    steps = sum(ns for block in trial.blocks for ns in block.step_ns)
    return min(1.0, waits / steps) if steps else None


def memory_bytes(trial: Trial) -> int | None:
    """Peak of this process, and of its loader's processes."""
    peak = trial.peak_rss_bytes
    return None if peak is None else peak + (trial.workers_bytes or 0)


def last_loss(trial: Trial) -> float | None:
    """Mean loss at the end of the blocks; ``None`` where it is no number."""
    import math

    losses = [block.losses[-1] for block in trial.blocks if block.losses]
    mean = sum(losses) / len(losses) if losses else None
    return mean if mean is not None and math.isfinite(mean) else None


def resident_bytes() -> int | None:
    """Memory of this process now."""
    import psutil

    try:
        return int(psutil.Process().memory_info().rss)
    except psutil.Error:
        return None


def _noise(runs: FairRuns) -> float:
    """By how much the loop differs from itself."""
    change = runs.change(0, 1)
    apart = 0.0 if change.ratio is None else abs(1 - change.ratio)
    return max(LEAST_NOISE, apart, change.noise_floor or 0.0)


def _batch(work: "Workload", bar: Progress, limit_s: float) -> tuple[int | None, str]:
    """Bytes of the first batch, and whether it is a sequence, a mapping or something else."""
    from workbench.recording.loader.sizes import bytes_in

    bar.stage("first batch")
    measuring = Measuring(progress=bar)
    with set_up(work, Settings(), measuring, limit_s) as driven:
        batch = driven.loop.draw()
        kind = "other"
        if isinstance(batch, Mapping):
            kind = "mapping"
        elif isinstance(batch, tuple | list):
            kind = "sequence"
        return bytes_in(batch), kind


def diagnosis(
    work: "Workload", settings: Settings, *, folder: Path, limit_s: float
) -> dict[str, Any]:
    """A short profile: its findings that have a setting, worst first, and parts of the step."""
    from workbench.profiling import profile

    run = profile(
        work,
        settings,
        steps=max(PROFILED_STEPS, LEAST_STEPS),
        record=Record(),
        folder=folder,
        name=f"profile-{settings}",
        time_limit_s=limit_s,
        progress=False,
    )
    findings = [found for found in run.findings if found.verdict == "yes"]
    return {
        "run": run.name,
        "findings": [
            {
                "code": found.code,
                "title": found.title,
                "setting": None if found.setting is None else dict(found.setting),
                "saving_ns": found.saving_ns_per_step_at_most,
                "speedup": found.speedup_at_most,
            }
            for found in findings
        ],
        "optimizer_share": _optimizer_share(run),
    }


def _optimizer_share(run: "Run") -> float | None:
    """Part of the steps that the optimizer takes, where no device hides what it takes."""
    parts = run.summary.document["ranks"][0]["host_breakdown_us"]
    if parts is None or parts.get("optimizer") is None:
        return None
    total = sum(value for value in parts.values() if value)
    return float(parts["optimizer"]) / total if total else None
