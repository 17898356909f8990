"""Random loaders on a simulated machine: the split is exact, and nearly all of it is right."""

import random
from typing import Any

import numpy as np
import pytest

from tests.analysis.stalls.loader import MS, US, Plan, SimulatedLoader
from workbench.analysis.intervals import Spans, intersect, total
from workbench.analysis.stalls.parts import PARTS, Stalls
from workbench.analysis.stalls.split import split_stalls

RIGHT = 0.95


def divided(loader: SimulatedLoader, exposed: Spans | None = None) -> Stalls:
    waits = loader.exposed()
    found = split_stalls(loader.records(), waits if exposed is None else exposed, waits)
    assert isinstance(found, Stalls)
    return found


def right(loader: SimulatedLoader, found: Stalls, exposed: Spans) -> float:
    """Share of the exposed wait that went to the part that the batch really was in."""
    pieces, good = found.pieces, 0
    for place, (made, wait) in enumerate(zip(loader.batches, loader.waits, strict=True)):
        told = dict(zip(PARTS, pieces.amounts[pieces.batch == place].sum(axis=0), strict=True))
        true: dict[str, int] = {}
        inside = intersect(exposed, Spans(*np.array([wait], np.int64).T))
        for start, end in zip(*inside, strict=True):
            for part, ns in loader.truth(made, int(start), int(end)).items():
                true[part] = true.get(part, 0) + ns
        good += sum(min(int(told[part]), ns) for part, ns in true.items())
    return good / max(total(exposed), 1)


def random_plan(draw: random.Random) -> Plan:
    """Stages of any length, most of them short, one or two long."""
    long = draw.sample(["read", "decode", "delay", "block", "collate", "send", "pin"], k=2)
    lengths: dict[str, Any] = {
        name: draw.choice((0, 20 * US, 100 * US)) for name in ("read", "decode", "delay", "block")
    }
    lengths |= {"collate": draw.choice((0, 300 * US)), "send": draw.choice((20 * US, 500 * US))}
    lengths |= {"pin": draw.choice((0, 2 * MS))}
    lengths |= {
        name: draw.choice((1, 5)) * MS * (1 if name in ("read", "decode", "delay", "block") else 8)
        for name in long
    }
    workers, prefetch = draw.randrange(5), draw.randint(1, 3)
    return Plan(
        workers=workers,
        prefetch=prefetch,
        steps=draw.choice((10, 40)),
        epochs=draw.randint(1, 3),
        persistent=draw.random() < 0.5,
        pinning=workers > 0 and draw.random() < 0.4,
        handed=draw.choice((1, 3)) if workers * prefetch >= 3 else 1,
        looked=draw.choice((1.0, 0.5, 0.2)),
        step=draw.choice((0, 1 * MS, 10 * MS, 40 * MS)),
        start=draw.choice((0, 30 * MS, 300 * MS)),
        **lengths,
    )


def part_of(exposed: Spans, draw: random.Random) -> Spans:
    """Some stretches of the waits, as a device leaves them when it still works."""
    kept = [
        (start + draw.randrange(end - start) // 2, end)
        for start, end in zip(*(side.tolist() for side in exposed), strict=True)
        if end > start + 1 and draw.random() < 0.8
    ]
    return Spans(*np.array(kept, np.int64).reshape(-1, 2).T)


@pytest.mark.parametrize("seed", range(40))
def test_random_loaders_are_split_exactly_and_right(seed: int) -> None:
    draw = random.Random(seed)
    loader = SimulatedLoader(random_plan(draw), seed)
    exposed = loader.exposed() if draw.random() < 0.5 else part_of(loader.exposed(), draw)
    found = divided(loader, exposed)
    assert sum(ns for ns in found.by_part.values() if ns is not None) == total(exposed)
    pieces = found.pieces
    assert (pieces.amounts >= 0).all()
    assert (pieces.amounts.sum(axis=1) == pieces.end - pieces.start).all()
    assert right(loader, found, exposed) >= RIGHT
