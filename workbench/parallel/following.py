"""A training in ranks that follows another process: step by step, and then everything back."""

import math
from collections.abc import Iterator
from typing import Any

from workbench.parallel.carried import Carried, collect
from workbench.parallel.carrying import dumps
from workbench.parallel.lockstep import ROW, VALUES, Lockstep
from workbench.parallel.rank import Rank

READY = "ready.pkl"
NO_LIMIT_S = 24 * 3600.0


def follow(rank: Rank, payload: dict[str, Any]) -> Carried:
    """Train the steps that are allowed, and give back what was trained.

    Args:
        rank: Which one.
        payload: ``work``, ``settings``, ``placed``, ``random`` and ``rest``: the indices that are
            left of the epoch, ``None`` where one begins.
    """
    import torch

    from workbench.parallel.share import Aside
    from workbench.parallel.spread import set_random_states, spread
    from workbench.recording.telemetry import Telemetry
    from workbench.recording.telemetry_meter import StepFacts, meter_for
    from workbench.workload.epoch_order import EpochOrder
    from workbench.workload.placement import samples_in

    work, settings = payload["work"], payload["settings"]
    torch.set_num_threads(payload["placed"]["threads"])
    steps = Lockstep(rank.folder, rank.world_size)
    rank.join(payload["placed"]["backend"], NO_LIMIT_S)
    set_random_states(payload["random"])
    aside, order, held = Aside(), EpochOrder(), list[Any]()
    if payload["rest"] is not None:
        order.resume(payload["rest"])
    with spread(work, settings, rank, aside=aside, order=order, held=held) as training:
        telemetry = Telemetry(kept=2)
        meter = training.control.watch = meter_for(training.device, telemetry)
        batches = training.batches()
        batches.on_end = order.end
        if rank.number == 0:
            _ready(rank, training)
        step = 1
        while steps.next(step):
            meter.restart()
            meter.begin_input()
            held_batch = [next(batches)]
            meter.end_input()
            samples = samples_in(held_batch[0])
            loss = training.step(held_batch.pop())
            order.trained(order.whole)
            facts = StepFacts(
                step=step, epoch=batches.epochs, change=0, profiled=False, samples=samples
            )
            meter.end_step(facts, loss)
            meter.collect(wait=True)
            last = telemetry.last(1)
            steps.tell(rank.number, step, {name: float(last[name][-1]) for name in ROW})
            step += 1
        place = {
            "rest": order.rest(),
            "epochs": batches.epochs,
            "random": aside.states(),
            "generators": [each.get_state() for each in order.generators()],
        }
        stage = held[0] if held else None
        return collect(work, stage, place, whole=rank.number == 0 or stage is not None)


def _ready(rank: Rank, training: Any) -> None:
    """Say what is in force, whole or not at all."""
    partial = rank.folder / f"{READY}.partial"
    partial.write_bytes(dumps({"effective": training.effective, "notes": training.notes}))
    partial.rename(rank.folder / READY)


def all_ranks(rows: list[dict[str, float]], mode: str) -> dict[str, float]:
    """A step of all ranks: the times of rank 0, the samples and the loss of all together."""
    found = dict(rows[0])
    if mode in ("ddp", "fsdp"):
        found["samples"] = sum(row["samples"] for row in rows)
        found["loss"] = sum(row["loss"] for row in rows) / len(rows)
    if mode == "pp":
        found["loss"] = rows[-1]["loss"]
    return found


def lanes(rows: list[dict[str, float]]) -> Iterator[dict[str, float | None]]:
    """The times of each rank, for people; ``None`` was not measured."""
    for row in rows:
        yield {name: None if math.isnan(row[name]) else row[name] for name in VALUES}
