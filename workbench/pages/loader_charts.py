"""Charts of the loader's inside, with their tables and alternative text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures import palette
from workbench.figures.epochs import Epoch, epoch_batches
from workbench.figures.loader_lanes import Bar, loader_lanes
from workbench.figures.loader_rate import loader_rate
from workbench.figures.stalls import stall_parts
from workbench.pages.charts import drawn_chart
from workbench.pages.frames import LIMIT
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table

Times = NDArray[np.int64]


def stalls_chart(
    parts_ns: Mapping[str, Times | None] | None, *, numbers: Sequence[int] = (), **rest: Any
) -> StaticFigure:
    """What each step's wait for data is spent on."""
    figure = stall_parts(parts_ns, numbers=numbers, **rest)
    table = None if parts_ns is None else _stalls_table(parts_ns, numbers)
    return drawn_chart(figure, table, "A bar a step, divided by part.")


def lanes_chart(
    lanes: Mapping[str, Sequence[Bar]] | None, waits: Sequence[Bar] = (), **rest: Any
) -> StaticFigure:
    """Who made which batch when, and who waited meanwhile."""
    table = None if not lanes else _lanes_table(lanes, waits)
    alt = "A lane for who waits, and one for each worker; a bar a stage of a batch."
    return drawn_chart(loader_lanes(lanes, waits, **rest), table, alt)


def rate_chart(
    need: float | None,
    brings: float | None,
    *,
    reached: float | None = None,
    unit: str = "samples/s",
    **rest: Any,
) -> StaticFigure:
    """What the model could take, what the loader brings, and what the loop reaches."""
    figure = loader_rate(need, brings, reached=reached, unit=unit, **rest)
    rows = (
        ("the model can take", need),
        ("the loader brings", brings),
        ("the loop reaches", reached),
    )
    columns = (Column(name="rate"), Column(name=unit, kind="number"))
    known = bool(need and brings)
    table = Table(caption="Rates", columns=columns, rows=rows) if known else None
    return drawn_chart(figure, table, "A bar a rate.")


def epochs_chart(epochs: Sequence[Epoch] | None, **rest: Any) -> StaticFigure:
    """What making a batch takes in the first epoch and in the later ones."""
    table = None if epochs is None else _epochs_table(epochs)
    return drawn_chart(epoch_batches(epochs, **rest), table, "A bar an epoch, divided by part.")


def _stalls_table(parts_ns: Mapping[str, Times | None], numbers: Sequence[int]) -> Table:
    """One row a step, a column for each part that any step has or that could not be seen."""
    kept = [(name, ns) for name, ns in parts_ns.items() if ns is None or ns.any()]
    known = [ns for ns in parts_ns.values() if ns is not None]
    whole = np.sum(known, axis=0) if known else np.zeros(len(numbers), np.int64)
    rows = tuple(
        (str(number), int(whole[at]), *(None if ns is None else int(ns[at]) for _, ns in kept))
        for at, number in enumerate(numbers[:LIMIT])
    )
    columns = (
        Column(name="step", kind="value"),
        Column(name="exposed wait", kind="time"),
        *(Column(name=palette.stall(name).label, kind="time") for name, _ in kept),
    )
    left = max(0, len(numbers) - LIMIT)
    return Table(
        caption="The wait for data of every step", columns=columns, rows=rows, left_out=left
    )


def _lanes_table(lanes: Mapping[str, Sequence[Bar]], waits: Sequence[Bar]) -> Table:
    """One row a lane: its batches, and the time in each stage."""
    stages = [
        part
        for part in palette.STALLS
        if any(bar[2] == part for some in (waits, *lanes.values()) for bar in some)
    ]
    rows = tuple(
        (
            name,
            len({bar[3] for bar in some}),
            *(sum(bar[1] - bar[0] for bar in some if bar[2] == part) for part in stages),
        )
        for name, some in (("waits for data", waits), *lanes.items())
    )
    columns = (
        Column(name="lane"),
        Column(name="batches", kind="count"),
        *(Column(name=palette.stall(part).label, kind="time") for part in stages),
    )
    return Table(caption="Lanes in the stretch that is drawn", columns=columns, rows=rows)


def _epochs_table(epochs: Sequence[Epoch]) -> Table:
    parts = [name for name in palette.STALLS if any(each.parts_ns.get(name) for each in epochs)]
    rows = tuple(
        (
            str(each.number + 1),
            each.batches,
            each.made_ns,
            each.storage_bytes,
            *(each.parts_ns.get(name) for name in parts),
        )
        for each in epochs[:LIMIT]
    )
    columns = (
        Column(name="epoch", kind="value"),
        Column(name="batches", kind="count"),
        Column(name="making a batch", kind="time"),
        Column(name="from storage a batch", kind="bytes"),
        *(Column(name=palette.stall(name).label, kind="time") for name in parts),
    )
    left = max(0, len(epochs) - LIMIT)
    return Table(caption="Epochs", columns=columns, rows=rows, left_out=left)
