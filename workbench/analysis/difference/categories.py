"""Time moved between categories: the parts of a step on both sides, made comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSES
from workbench.analysis.difference.by_step import ByStep
from workbench.analysis.difference.matching import match_names
from workbench.analysis.difference.table import difference_table

if TYPE_CHECKING:
    import pandas as pd

Parts = Mapping[str, NDArray[np.int64] | None]
"""Nanoseconds by category, a value a step; ``None``: not measured. They sum to the step."""

NOT_MEASURED = "not_measured"
"""The change of a category that only one side could have recorded."""

_SPLITS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "exposed_communication",
        ("exposed_communication_wait", "exposed_communication_transfer"),
    ),
    ("host_other", ("host_python", "host_other")),
)
"""Parts that are one where a side could not divide them: without other ranks, without stacks."""


def category_table(
    a: Parts,
    b: Parts,
    *,
    per: tuple[float, float] = (1.0, 1.0),
    causes: bool = True,
    certain: bool = True,
) -> pd.DataFrame:
    """Where the time of a step went on both sides, in the order of the parts.

    Args:
        a: Parts of the first side.
        b: Parts of the second side, of the same kind (both of a device, or both of the host).
        per: By what the times of each side are divided.
        causes: Whether both sides can tell why the device was idle; else idle is one part.
        certain: Whether the times can be trusted.

    Returns:
        Columns ``name, change, first_ns, second_ns, difference_ns, low_ns, high_ns``. A part that
        neither side measured is left out; where only one did, the other's time is NaN and so is
        the difference: its time is somewhere in the other parts.
    """
    a, b = comparable(a, b, causes=causes)
    sides = _as_rows(a), _as_rows(b)
    table = difference_table(*sides, match_names(*sides), per=per, certain=certain)
    kept = ["name", "change", "first_ns", "second_ns", "difference_ns", "low_ns", "high_ns"]
    table = table[kept]
    for parts, column in ((a, "first_ns"), (b, "second_ns")):
        missing = table["name"].map(lambda name, parts=parts: parts[name] is None)
        table.loc[missing, [column, "difference_ns", "low_ns", "high_ns"]] = np.nan
        table.loc[missing, "change"] = NOT_MEASURED
    table = table[table[["first_ns", "second_ns"]].notna().any(axis=1)]
    place = {name: at for at, name in enumerate(a)}
    order = table["name"].map(place).to_numpy().argsort(kind="stable")
    return table.iloc[order].reset_index(drop=True)


def comparable(a: Parts, b: Parts, *, causes: bool = True) -> tuple[Parts, Parts]:
    """Both sides with the same parts, divided only as far as both could divide them."""
    for whole, pieces in _SPLITS:
        present = any(name in side for side in (a, b) for name in pieces)
        if present and any(side.get(name) is None for side in (a, b) for name in pieces):
            a, b = _joined(a, pieces, whole), _joined(b, pieces, whole)
    if not causes:
        a, b = _joined(a, CAUSES, "idle"), _joined(b, CAUSES, "idle")
    names = dict.fromkeys([*a, *b])
    return {name: a.get(name) for name in names}, {name: b.get(name) for name in names}


def _joined(side: Parts, pieces: Sequence[str], whole: str) -> Parts:
    """The pieces as one part, at the place of the first; what was not measured adds nothing."""
    told = [side.get(name) for name in pieces]
    found = [values for values in told if values is not None]
    together = np.sum(found, axis=0) if found else None
    made: dict[str, NDArray[np.int64] | None] = {}
    for name, values in side.items():
        if name in pieces:
            made.setdefault(whole, together)
        else:
            made[name] = values
    return made


def _as_rows(parts: Parts) -> ByStep:
    steps = next((len(values) for values in parts.values() if values is not None), 1)
    times = [np.zeros(steps, np.int64) if v is None else v for v in parts.values()]
    return ByStep(
        names=tuple(parts),
        groups=tuple(parts),
        calls=np.zeros((len(parts), steps), np.int64),
        ns=np.array(times, np.int64).reshape(len(parts), steps),
        median_ns=np.full(len(parts), np.nan),
    )
