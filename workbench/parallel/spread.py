"""One workload in one rank: its share of the data, and its model spread over all ranks."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import IterableDataset

from workbench.parallel.pipeline import pipe
from workbench.parallel.rank import Rank
from workbench.parallel.replicas import replicate, unused_explained
from workbench.parallel.sharded import shard
from workbench.parallel.share import Aside, Part, share_source
from workbench.parallel.tensor import divide
from workbench.settings import Parallel, Settings
from workbench.workload.applying import run_device
from workbench.workload.checks import check_copies, check_reach
from workbench.workload.epoch_order import EpochOrder, in_order
from workbench.workload.placement import move_modules, settle_optimizers
from workbench.workload.precision import check_precision
from workbench.workload.preparation import ready
from workbench.workload.source import Source, open_source
from workbench.workload.training import Plan, Training
from workbench.workload.workload import Workload

_BATCH_NORM = nn.modules.batchnorm._BatchNorm


def random_states() -> dict[str, Any]:
    """The states that ranks begin with, so that they read the data in the order of one process."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Begin as the caller's process would go on."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])


@contextmanager
def spread(
    work: Workload,
    settings: Settings,
    rank: Rank,
    *,
    aside: Aside | None = None,
    order: EpochOrder | None = None,
    held: list[nn.Module] | None = None,
) -> Iterator[Training]:
    """The workload ready to run as this rank; the process is ours, so nothing is put back.

    The process group is joined before. Every rank holds the same weights, and draws the order of
    the data from the same random states.

    Args:
        work: Carried here; its weights are those of the process that it came from.
        settings: How it is spread, and what else is changed.
        rank: Which one.
        aside: Random states from which the order of the data is drawn.
        order: Of an epoch that goes on here, or elsewhere afterwards.
        held: Gets the stage that this rank holds, where stages are made.

    Raises:
        SettingError: When the model or the data cannot be spread so; says which part and why.
    """
    parallel = settings.ranks
    if parallel is None:
        raise TypeError("spread() is for settings that need several processes")
    plain, notes = replace(settings, parallel=None), list[str]()
    with ExitStack() as undo:
        check_reach(work, plain)
        device = _own_device(work, plain, rank)
        check_precision(plain.precision, device, notes)
        check_copies(plain, device)
        source = open_source(work, plain, notes, undo)
        if order is not None:
            source = _in_place(source, order)
        source = share_source(source, _part(parallel, rank), notes, aside, order)
        if parallel.mode in ("ddp", "fsdp") and rank.number:
            _draw_apart(rank.number)
        wrap = partial(_spread_model, parallel=parallel, rank=rank, notes=notes, held=held)
        training = ready(work, plain, source, device, notes=notes, undo=undo, wrap=wrap)
        notes.extend(_caveats(work, parallel))
        try:
            with unused_explained(training.model):
                yield training
        finally:
            training.close()


def _part(parallel: Parallel, rank: Rank) -> Part:
    if parallel.divides_batches:
        return Part(number=rank.number, of=rank.world_size)
    return Part(number=0, of=1, same_size=parallel.mode == "pp")


def _in_place(source: Source, order: EpochOrder) -> Source:
    """The source with a loader that takes its indices from the order of an epoch."""
    loader = source.loader
    if loader is None or isinstance(loader.dataset, IterableDataset):
        return source
    placed, whole = in_order(loader, order)
    if order.under_way and not order.holds(whole if placed.drop_last else 1):
        order.end()
    return replace(source, loader=placed)


def _spread_model(
    plan: Plan,
    *,
    parallel: Parallel,
    rank: Rank,
    notes: list[str],
    held: list[nn.Module] | None,
) -> Plan:
    if parallel.mode == "ddp":
        return replicate(plan, parallel)
    if parallel.mode == "fsdp":
        return shard(plan, parallel, rank.world_size, notes)
    if parallel.mode == "tp":
        return divide(plan, parallel, rank.world_size, notes)
    return pipe(plan, parallel, rank, notes, held)


def _own_device(work: Workload, settings: Settings, rank: Rank) -> torch.device:
    """The device of this rank, with model, loss and optimizer state moved to it."""
    device = run_device(work, settings)
    if device.type == "cpu":
        return device
    mine = torch.device(device.type, rank.local_number)
    getattr(torch, device.type).set_device(mine)
    move_modules([m for m in (work.model, work.loss) if isinstance(m, nn.Module)], mine)
    settle_optimizers(work.optimizers)
    return mine


def _draw_apart(number: int) -> None:
    """Let dropout and augmentation of this rank differ from those of the others."""
    seed = int(torch.randint(2**62, ()).item()) + number
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def _caveats(work: Workload, parallel: Parallel) -> Iterator[str]:
    model = work.model
    if not isinstance(model, nn.Module) or not any(
        isinstance(m, _BATCH_NORM) and not isinstance(m, nn.SyncBatchNorm) for m in model.modules()
    ):
        return
    if parallel.divides_batches:
        yield (
            "batch norm takes its mean and variance over a rank's share of each batch, so losses "
            "differ from those of one process beyond rounding (torch.nn.SyncBatchNorm on CUDA "
            "takes them over all ranks)"
        )
    if parallel.mode == "pp":
        yield (
            "batch norm takes its mean and variance over each micro-batch, so losses differ from "
            "those of one process beyond rounding"
        )
