"""``wb.profile`` in several ranks: each measures and records, and one Run holds all of them."""

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from workbench.errors import SettingError, WorkloadError
from workbench.profiling.measuring import Order, measure
from workbench.profiling.writing import Measured, write_run
from workbench.recording.progress import Progress
from workbench.recording.window import warm_up
from workbench.settings import Parallel, Settings
from workbench.store.folder import read_record
from workbench.store.names import safe_name
from workbench.store.record import RECORD_NAME, RunRecord
from workbench.store.writing import new_run_folder

if TYPE_CHECKING:
    from workbench.parallel.rank import Rank
    from workbench.workload import Workload
    from workbench.workload.training import Training

TELL_S = 0.5
_RUN = "run"
_WORK = "work"


def profile_ranks(
    work: "Workload", order: Order, bar: Progress, target: Path, *, base: Path
) -> Path:
    """Measure in fresh processes and write the Run to ``target``, or beside it.

    Raises:
        SettingError: When the workload cannot be spread so, or this machine has too little for it.
        RankError: A rank failed.
        TimeLimitError: It took too long.
    """
    from workbench.parallel.job import refuse_nested
    from workbench.parallel.launch import launch
    from workbench.parallel.placing import check_workload, place
    from workbench.parallel.spread import random_states
    from workbench.workload.checks import check_reach

    parallel = spreading(order.settings)
    refuse_nested("wb.profile")
    if order.keep_training:
        raise SettingError(
            f"keep_training=True cannot act with parallel={parallel.mode!r}: the ranks train "
            "copies of the model, which end with them. Leave it out."
        )
    check_reach(work, replace(order.settings, parallel=None))
    placed = place(work, order.settings, parallel)
    check_workload(work, order.settings, parallel)
    published: list[Path] = []
    bar.stage("starting ranks")
    launch(
        record_rank,
        {
            _WORK: work,
            "order": order,
            "placed": placed,
            "random": random_states(),
        },
        world_size=placed["world_size"],
        launcher=parallel.launcher or "local",
        threads=placed["threads"],
        time_limit_s=order.time_limit_s,
        on_event=_shower(bar),
        keep=lambda folder: published.append(
            publish(folder, target, placed["world_size"], base=base)
        ),
    )
    return published[0]


def spreading(settings: Settings) -> Parallel:
    """What the settings say of ranks; only asked where they say something."""
    if settings.ranks is None:
        raise TypeError("only for settings that spread the work")
    return settings.ranks


def _shower(bar: Progress) -> Callable[[dict[str, Any]], None]:
    """What hands on rank 0's words to the bar in the notebook."""
    shown = [0]

    def show(event: dict[str, Any]) -> None:
        if "expect" in event:
            bar.expect(event["expect"])
        for _ in range(event.get("step", shown[0]) - shown[0]):
            bar.advance()
        shown[0] = max(shown[0], event.get("step", 0))
        if "stage" in event:
            loss = event.get("loss")
            bar.stage(event["stage"] if loss is None else f"{event['stage']}, loss {loss:.4g}")

    return show


class RankProgress(Progress):
    """What rank 0 tells of its progress, for the bar in the notebook.

    Steps are told a few times a second only: writing takes time, and the steps are measured.
    """

    def __init__(self, rank: "Rank", measured: Measured) -> None:
        super().__init__(shown=False, title="")
        self._rank = rank
        self._measured = measured
        self._steps = 0
        self._told = time.monotonic()

    def stage(self, text: str) -> None:
        """Hand on what is going on, how many steps are done, and the loss of the last block."""
        self._rank.say(stage=text, step=self._steps, loss=self._measured.loss)

    def expect(self, more: int) -> None:
        """Hand on how many steps are to come."""
        self._rank.say(step=self._steps)
        self._rank.say(expect=more)

    def advance(self) -> None:
        """Count a step, and hand it on when it is time."""
        self._steps += 1
        now = time.monotonic()
        if now - self._told > TELL_S:
            self._told = now
            self._rank.say(step=self._steps)


def record_rank(rank: "Rank", payload: dict[str, Any]) -> None:
    """Measure and record as one rank; the Run of rank 0 and the others' traces stay in the folder.

    Args:
        rank: Which one.
        payload: What :func:`profile_ranks` gives.
    """
    import torch

    from workbench.parallel.replicas import logging_data
    from workbench.parallel.spread import set_random_states, spread

    work, order, placed = payload[_WORK], payload["order"], payload["placed"]
    torch.set_num_threads(placed["threads"])
    rank.join(placed["backend"], _patience(order.time_limit_s))
    set_random_states(payload["random"])
    parallel = spreading(order.settings)
    measured = Measured(record=order.record, settings=order.settings)
    warm_up()

    def last(training: "Training") -> None:
        every = _compare_ranks(rank, parallel, measured, training.model)
        _describe(measured, parallel, placed, every, logging_data(training.model))

    window = measure(
        spread(work, order.settings, rank),
        replace(order, record=order.record if rank.number == 0 else _quiet(order)),
        RankProgress(rank, measured),
        measured,
        agree=rank.agree,
        last=last,
    )
    if rank.number:
        window.export(rank.folder / f"rank{rank.number}.trace.json.gz")
    else:
        write_run(rank.folder / _RUN, window, measured, base=Path.cwd())
    rank.barrier()


def _patience(limit_s: float | None) -> float:
    """Longer than our own limit, which says better where each rank stood."""
    return 3600.0 if limit_s is None else limit_s + 60.0


def _quiet(order: Order) -> Any:
    """What other ranks than the first record: their loaders are like its own."""
    return replace(order.record, loader=False)


def _compare_ranks(
    rank: "Rank", parallel: Parallel, measured: Measured, model: Any
) -> list[dict[str, Any]]:
    """What each rank has; refuses a training whose ranks went different ways.

    Raises:
        WorkloadError: When replicas do not hold the same weights at the end.
    """
    from workbench.parallel.replicas import weights_sum

    replicas = parallel.mode == "ddp"
    every: list[dict[str, Any]] = rank.gather(
        {
            "loss": measured.loss,
            "losses": measured.losses,
            "weights": weights_sum(model) if replicas else None,
            "samples_per_step": measured.samples_per_step,
            "peak_memory": measured.peak_memory,
        }
    )
    sums = {str(each["weights"]) for each in every}
    if replicas and len(sums) > 1:
        raise WorkloadError(
            "the ranks end with different weights, so gradients were not averaged: the step must "
            "call the model that it is given, step(model, batch), and not one that it finds by "
            "another name."
        )
    return every


def _describe(
    measured: Measured,
    parallel: Parallel,
    placed: dict[str, Any],
    every: list[dict[str, Any]],
    told: dict[str, Any] | None,
) -> None:
    """Put into the Run what is true of all ranks together."""
    size = placed["world_size"]
    share = measured.effective.get("batch_size")
    if parallel.mode == "pp":
        measured.loss, measured.losses = every[-1]["loss"], every[-1]["losses"]
    if parallel.divides_batches:
        samples = [each["samples_per_step"] for each in every]
        known = [value for value in samples if value is not None]
        measured.samples_per_step = sum(known) if len(known) == size else None
        losses = [each["loss"] for each in every if each["loss"] is not None]
        measured.loss = sum(losses) / size if len(losses) == size else None
        measured.losses = mean_losses([each["losses"] for each in every])
        share = None if share is None else share // size
    measured.effective |= {
        "parallel": parallel.to_json(),
        "world_size": size,
        "backend": placed["backend"],
        "launcher": parallel.launcher or "local",
        "batch_per_rank": share,
        "rank_losses": [each["loss"] for each in every],
        "rank_peak_bytes": [(each["peak_memory"] or {}).get("peak_rss_bytes") for each in every],
        "ddp_logging": told,
        "batch_sampler": "BatchSampler" if share is not None else None,
    }
    measured.notes.append(
        f"{size} ranks ran in processes of their own, {placed['threads']} threads each; times are "
        "those of rank 0, and samples and loss those of all ranks together"
    )


def mean_losses(ranks: list[list[float | None] | None]) -> list[float | None] | None:
    """The mean over the ranks, step by step; ``None`` where one of them has none."""
    if not all(ranks):
        return None
    found: list[float | None] = []
    for step in zip(*(each or [] for each in ranks), strict=True):
        known = [loss for loss in step if loss is not None]
        found.append(sum(known) / len(known) if len(known) == len(step) else None)
    return found


def publish(folder: Path, target: Path, world_size: int, *, base: Path) -> Path:
    """Make one Run of what the ranks left in the job's folder.

    A relative ``target`` lies below ``base``, as for a Run of one process.
    """
    from workbench.parallel.log_warnings import log_warnings

    made = folder / _RUN
    record: RunRecord = read_record(made)
    wanted = safe_name(target.name)
    with new_run_folder(base / target.parent, wanted) as new:
        for left in made.iterdir():
            if left.name != RECORD_NAME:
                shutil.move(left, new.path / left.name)
        others = [f"rank{number}.trace.json.gz" for number in range(1, world_size)]
        for name in others:
            shutil.move(folder / name, new.path / name)
        notes = list(record.notes)
        warnings = [*record.warnings, *log_warnings(folder)]
        if new.name != wanted:
            notes.append(
                f"{wanted!r} was there already: this Run is called {new.name!r} "
                f"and lies in {target.parent / new.name}"
            )
        new.record = msgspec.structs.replace(
            record,
            name=new.name,
            notes=notes,
            warnings=list(dict.fromkeys(warnings)),
            traces=[*record.traces, *others],
        )
    return target.parent / new.name
