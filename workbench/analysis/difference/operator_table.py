"""Operators of two sides, by device time where both sides recorded it and by host time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analysis.difference.matching import match_operators
from workbench.analysis.difference.operator_work import OperatorWork
from workbench.analysis.difference.table import difference_table

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("name", "name_first", "match", "by", "change", "calls_first", "calls_second"),
    *("first_ns", "second_ns", "difference_ns", "low_ns", "high_ns"),
    *("host_change", "host_first_ns", "host_second_ns", "host_difference_ns"),
)


def operator_differences(
    a: OperatorWork,
    b: OperatorWork,
    *,
    per: tuple[float, float] = (1.0, 1.0),
    certain: bool = True,
) -> pd.DataFrame:
    """One row an operator, the largest difference first.

    ``by`` says of what time ``first_ns``, ``second_ns`` and their difference are: ``device`` where
    both sides recorded work on one, then of the work that the operator launched itself; else
    ``host``, then of the operator without those that it called. The host's times stand beside them
    in any case; they are times under the profiler, which makes small operators slower.
    """
    pairs = match_operators(a.host, b.host)
    host = difference_table(a.host, b.host, pairs, per=per)
    on_device = a.device is not None and b.device is not None
    main = host
    if a.device is not None and b.device is not None:
        main = difference_table(a.device, b.device, pairs, per=per, certain=certain)
    key = ["name", "name_first"]
    names = {name: f"host_{name}" for name in ("change", "first_ns", "second_ns", "difference_ns")}
    beside = host.rename(columns=names)[[*key, *names.values()]]
    table = main.merge(beside, on=key, how="left").assign(by="device" if on_device else "host")
    order = [-table["host_difference_ns"].abs(), -table["difference_ns"].abs()]
    place = table.assign(host=order[0], main=order[1]).sort_values(["main", "host"], kind="stable")
    return place[list(COLUMNS)].reset_index(drop=True)
