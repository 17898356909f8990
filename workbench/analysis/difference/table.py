"""The table of a comparison: both sides of every pair, the difference, and what may be said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.difference.by_step import ByStep
from workbench.analysis.difference.matching import Pair
from workbench.statistics.spread import Spread, Values, compare_rows

if TYPE_CHECKING:
    import pandas as pd

CHANGES = ("added", "removed", "faster", "slower", "same", "cannot_tell")
"""``same``: not beyond what steps differ by. ``cannot_tell``: different, but one step tells no
spread, or the numbers are void."""

COLUMNS = (
    *("name", "name_first", "match", "group", "change"),
    *("calls_first", "calls_second", "median_first_ns", "median_second_ns"),
    *("first_ns", "second_ns", "difference_ns", "low_ns", "high_ns"),
)


def difference_table(
    a: ByStep,
    b: ByStep,
    pairs: Sequence[Pair],
    *,
    per: tuple[float, float] = (1.0, 1.0),
    certain: bool = True,
) -> pd.DataFrame:
    """One row a pair, the largest difference first; times are means per step.

    Args:
        a: The first side.
        b: The second side.
        pairs: Which rows belong together.
        per: By what the times of each side are divided: the samples of a step, where they differ.
        certain: Whether the times can be trusted; without, no row is called faster or slower.

    Returns:
        Columns ``COLUMNS``. ``name`` is that of the second side, or of the only one; ``match``
        says why two rows are the same. ``low_ns`` and ``high_ns`` are the ends of the 95 % interval
        of the difference, NaN where a side has one step only.
    """
    import pandas as pd

    first = np.array([pair.first for pair in pairs], np.int64)
    second = np.array([pair.second for pair in pairs], np.int64)
    times = _taken(a.ns, first) / per[0], _taken(b.ns, second) / per[1]
    rounding = _rounding(a, first, per[0]), _rounding(b, second, per[1])
    spread = _compared(times, rounding, np.ones(len(pairs), bool))
    both = (first >= 0) & (second >= 0)
    beyond = np.zeros(len(pairs), bool)
    beyond[both] = _compared(times, rounding, both).beyond
    table = pd.DataFrame(
        {
            "name": pd.Series(_names(pairs, b, a), dtype=object),
            "name_first": pd.Series(_first_names(pairs, a), dtype=object),
            "match": pd.Series([pair.reason for pair in pairs], dtype=object),
            "group": pd.Series(_groups(pairs, b, a), dtype=object),
            "change": _changes(first, second, spread, beyond & certain, certain=certain),
            "calls_first": _mean(a.calls, first),
            "calls_second": _mean(b.calls, second),
            "median_first_ns": _median(a, first),
            "median_second_ns": _median(b, second),
            "first_ns": times[0].mean(axis=1),
            "second_ns": times[1].mean(axis=1),
            "difference_ns": spread.difference,
            "low_ns": spread.difference - spread.margin,
            "high_ns": spread.difference + spread.margin,
        },
        columns=list(COLUMNS),
    )
    size = table["difference_ns"].abs()
    order = np.lexsort((-table["second_ns"], -size))
    return table.iloc[order].reset_index(drop=True)


def _compared(
    times: tuple[Values, Values], rounding: tuple[Values, Values], rows: NDArray[np.bool_]
) -> Spread:
    return compare_rows(
        times[0][rows],
        times[1][rows],
        rounding_a=rounding[0][rows],
        rounding_b=rounding[1][rows],
    )


def renamed(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are pairs of two names."""
    return table["name_first"].notna() & (table["name"] != table["name_first"])


def _taken(values: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The rows as float64; zero in every step where a side has none."""
    padded = np.vstack((values, np.zeros((1, values.shape[1]), np.int64)))
    return np.asarray(padded[rows], np.float64)


def _mean(values: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(_taken(values, rows).mean(axis=1))


def _median(side: ByStep, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.append(side.median_ns, np.nan)[rows]


def _rounding(side: ByStep, rows: NDArray[np.int64], per: float) -> NDArray[np.float64]:
    """Variance that a step gets from rounding alone: both stamps of every call, r²/12 each."""
    return _mean(side.calls, rows) * side.rounding_ns**2 / 6 / per**2


def _names(pairs: Sequence[Pair], b: ByStep, a: ByStep) -> list[str]:
    return [b.names[p.second] if p.second >= 0 else a.names[p.first] for p in pairs]


def _first_names(pairs: Sequence[Pair], a: ByStep) -> list[str | None]:
    return [a.names[pair.first] if pair.first >= 0 else None for pair in pairs]


def _groups(pairs: Sequence[Pair], b: ByStep, a: ByStep) -> list[str]:
    return [b.groups[p.second] if p.second >= 0 else a.groups[p.first] for p in pairs]


def _changes(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    spread: Spread,
    beyond: NDArray[np.bool_],
    *,
    certain: bool,
) -> NDArray[np.object_]:
    less = spread.difference < 0
    told = np.where(beyond, np.where(less, "faster", "slower"), "same").astype(object)
    unsure = (spread.difference != 0) & (np.isnan(spread.margin) | (not certain))
    told[unsure] = "cannot_tell"
    told[first < 0], told[second < 0] = "added", "removed"
    return np.asarray(told, object)
