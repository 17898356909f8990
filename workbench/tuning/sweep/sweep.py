"""Sweep a loop's loader: workers, queue, pinning, fetch and persistence by short trials."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import SettingError, WorkbenchError
from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.tuning.block import Measuring, set_up
from workbench.tuning.sweep.bench import RealBench
from workbench.tuning.sweep.bounds import Machine, ceiling_ns
from workbench.tuning.sweep.climb import Climb
from workbench.tuning.sweep.config import Allowed, Config
from workbench.tuning.sweep.pace import factor, intervals
from workbench.tuning.sweep.record import LoaderSweep, SweepRow
from workbench.tuning.sweep.telling import sentence

if TYPE_CHECKING:
    from workbench.workload import Workload

BUDGET_S = 60.0
FILE = "loader_sweep.json"
MOST_WORKERS = 64
"""Nobody looks further (own choice)."""
UNDIVIDED = "the data set does not divide itself: each worker would read all of it"


def sweep_loader(
    work: "Workload",
    *,
    budget_s: float | None = BUDGET_S,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> LoaderSweep:
    """Find how this loop should load its data on this machine.

    First the loop runs a moment in its own process, batch and step by themselves. A loader that
    keeps up is left alone, and what these two times exclude is never tried. Then workers, whole
    batches at once, the depth of the queue and pinning are tried in interleaved blocks until the
    step is as short as without its loader, or nothing helps any more. Ties within the noise go to
    fewer workers. Afterwards everything is as it was.

    Args:
        work: Model, data and step.
        budget_s: Seconds after which no further trial starts; ``None``: as many as it takes.
        folder: Where the result is written as ``loader_sweep.json``; left out: nowhere.
        progress: Is told what goes on.
        interrupted: Is asked between steps; true ends the sweep with what there is.

    Raises:
        ProfilerBusyError: A profiler is active in this process.
        WorkloadError: The data cannot be used.
    """
    began = time.monotonic()
    bar = progress or Progress(shown=False, title=work.title)
    effective = _effective(work, bar)
    allowed = allowed_for(work, effective, bar)
    if allowed.fixed is not None:
        result = _nothing(work, allowed.fixed, time.monotonic() - began)
    else:
        bench = RealBench(
            work=work,
            as_it_is=allowed.as_it_is,
            effective=effective,
            progress=bar,
            budget_s=float("inf") if budget_s is None else budget_s,
            interrupted=interrupted,
        )
        climb = Climb(
            bench=bench,
            allowed=allowed,
            machine=_machine(effective),
            epoch=effective.get("batches_per_epoch"),
        )
        climb.go()
        result = summed_up(work.title, climb, time.monotonic() - began, bench.failure)
    if folder is not None:
        _write(Path(folder), result)
    return result


def allowed_for(work: "Workload", effective: dict[str, Any], bar: Progress) -> Allowed:
    """What can be switched on this loader; nothing is started."""
    as_it_is = Config.of(effective)
    if effective.get("workers") is None:
        kind = effective.get("data", "data")
        return Allowed(
            as_it_is=as_it_is, workers=0, fixed=f"{kind} has no DataLoader with switches to turn"
        )
    one = _refusal(work, Settings(workers=1), bar)
    many = _refusal(work, Settings(workers=2), bar) if one is None else one
    undivided = bool(effective.get("iterable")) and many is not None and one is None
    batched = not as_it_is.batched and _refusal(work, Settings(batched_fetch=True), bar) is None
    if one is not None and not batched and not as_it_is.workers:
        return Allowed(as_it_is=as_it_is, workers=0, fixed=one)
    return Allowed(
        as_it_is=as_it_is,
        workers=1 if undivided else 0 if one is not None else MOST_WORKERS,
        why_no_more=UNDIVIDED if undivided else one or "",
        batched=batched,
        pin=not str(effective.get("device", "cpu")).startswith("cpu"),
        duplicates=effective.get("divides_itself") is False and as_it_is.workers > 1,
    )


def _refusal(work: "Workload", settings: Settings, bar: Progress) -> str | None:
    """Why these settings cannot act, by what sets them up."""
    from workbench.workload.capability import offers
    from workbench.workload.workload import is_factory

    if not is_factory(work.data):
        refused = [o.reason for o in offers(work, settings) if o.state == "refused"]
        return refused[0] or "it is refused" if refused else None
    try:
        with set_up(work, settings, Measuring(progress=bar), None):
            return None
    except SettingError as error:
        return str(error)


def _effective(work: "Workload", bar: Progress) -> dict[str, Any]:
    with set_up(work, Settings(), Measuring(progress=bar), None) as driven:
        return dict(driven.about.effective)


def _machine(effective: dict[str, Any]) -> Machine:
    from workbench.machine import usable_cpus

    on_cpu = str(effective.get("device", "cpu")).startswith("cpu")
    return Machine(usable_cpus=usable_cpus(), on_cpu=on_cpu)


def _nothing(work: "Workload", why: str, elapsed_s: float) -> LoaderSweep:
    return LoaderSweep(
        title=work.title,
        settings=Settings(),
        sentence=f"≈ There is no loader to sweep: {why.rstrip('.')}.",
        rows=(),
        ended="fixed",
        elapsed_s=round(elapsed_s, 3),
    )


def summed_up(
    title: str, climb: Climb, elapsed_s: float, failure: str | None = None
) -> LoaderSweep:
    """The record of a sweep that came to its end."""
    if not climb.alones:
        why = failure or "it was interrupted, or the budget was over, before anything was measured"
        return LoaderSweep(
            title=title,
            settings=Settings(),
            sentence=f"≈ The loader was not swept and stays as it is: {why.rstrip('.')}.",
            rows=(),
            ended=climb.ended,
            elapsed_s=round(elapsed_s, 3),
        )
    swept = climb.ended != "keeps_up"
    chosen = climb.chosen() if swept else climb.as_it_is
    settings = chosen.settings(climb.as_it_is)
    gain = _gain(climb, chosen)
    alone = climb.alone(chosen)
    return LoaderSweep(
        title=title,
        settings=settings,
        sentence=sentence(climb, chosen, settings, gain),
        rows=rows(climb, chosen),
        ended=climb.ended,
        ceiling_ns=ceiling_ns(alone, climb.machine),
        batch_ns=alone.batch_ns,
        noise=climb.noise if climb.measured else None,
        ratio=None if gain is None else gain[0],
        low=None if gain is None else gain[1],
        high=None if gain is None else gain[2],
        elapsed_s=round(elapsed_s, 3),
        notes=_notes(chosen, climb),
    )


def _notes(chosen: Config, climb: Climb) -> tuple[str, ...]:
    found = []
    if chosen.persistent and not climb.as_it_is.persistent:
        found.append(
            "with persistent_workers=True workers keep the data set that they started with: what "
            "the loop changes in it between epochs does not reach them"
        )
    if climb.allowed.why_no_more:
        found.append(climb.allowed.why_no_more)
    return tuple(found)


def _trial_of(climb: Climb, chosen: Config) -> Config | None:
    """What was measured for the choice: with workers kept, or not."""
    both = (chosen, chosen._replace(persistent=not chosen.persistent))
    return next((config for config in both if config in climb.measured), None)


def _gain(climb: Climb, chosen: Config) -> tuple[float, float, float] | None:
    trial = _trial_of(climb, chosen)
    if trial is None or climb.as_it_is not in climb.measured or chosen == climb.as_it_is:
        return None
    measured = climb.measured
    ratio = climb.reckoned_ns(chosen, measured[trial]) / climb.pace_ns(climb.as_it_is)
    blocks = min(len(measured[c].block_ns) for c in (trial, climb.as_it_is))
    apart = factor(*intervals(measured.values()), blocks / 2)
    return None if apart is None else (ratio, ratio / apart, ratio * apart)


def rows(climb: Climb, chosen: Config) -> tuple[SweepRow, ...]:
    """Everything that was measured, then what was not."""
    trial = _trial_of(climb, chosen)
    spread = intervals(climb.measured.values())
    found = [_row(climb, config, spread, marked=config == trial) for config in climb.bench.measured]
    for config, why in climb.left_out.items():
        if config not in climb.bench.measured:
            found.append(_blank(climb, config, outcome="excluded", reason=why))
    return tuple(sorted(found, key=lambda row: (row.variant, row.workers)))


def _row(climb: Climb, config: Config, spread: tuple[float, int], *, marked: bool) -> SweepRow:
    found = climb.bench.measured[config]
    alone = climb.alone(config)
    step, apart = found.step_ns, factor(*spread, len(found.block_ns))
    return _blank(
        climb,
        config,
        outcome=found.outcome,
        reason=found.reason,
        step_ns=step,
        low_ns=None if step is None or apart is None else step / apart,
        high_ns=None if step is None or apart is None else step * apart,
        pace_ns=None if step is None else climb.pace_ns(config),
        startup_ns=found.startup_ns if found.start_ns and config.workers else None,
        samples_per_s=alone.samples / step * 1e9 if step and alone.samples else None,
        memory_bytes=found.memory_bytes,
        blocks=len(found.block_ns),
        chosen=marked,
    )


def _blank(climb: Climb, config: Config, **rest: Any) -> SweepRow:
    return SweepRow(
        workers=config.workers,
        prefetch_factor=config.prefetch or None,
        pin_memory=config.pin,
        persistent_workers=config.persistent,
        batched_fetch=config.batched,
        variant=config.variant,
        settings=config.settings(climb.as_it_is),
        as_it_is=config == climb.as_it_is,
        **rest,
    )


def _write(folder: Path, result: LoaderSweep) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(result.to_json(), indent=1, allow_nan=False)
        (folder / FILE).write_text(text, encoding="utf-8")
    except OSError as error:
        raise WorkbenchError(
            f"the loader sweep could not be written to {folder} ({error}): give folder=... a place "
            "that you may write to."
        ) from error
