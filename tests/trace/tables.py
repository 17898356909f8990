"""A trace with its codes replaced by what they stand for, so that two can be compared."""

from dataclasses import fields
from typing import Any

import numpy as np

from workbench.trace.arrow import TABLES, TEXTS, dtypes
from workbench.trace.table import Trace

Table = dict[str, list[Any]]
_TEXTS = {
    "name": "names",
    "category": "categories",
    "lane": "lanes",
    "shapes": "shapes",
    "types": "types",
    "strides": "strides",
    "values": "values",
    "stack": "stacks",
}


def tables(trace: Trace) -> dict[str, Any]:
    """Every table of a trace, decoded; what reading had to mend is no part of them."""
    found: dict[str, Any] = {name: decoded(trace, name) for name in TABLES}
    found["collectives"] = trace.collectives
    found["place"] = trace.base_ns, trace.rank, trace.world_size, trace.devices
    return found


def decoded(trace: Trace, name: str) -> Table:
    """The columns of one table as lists."""
    table = getattr(trace, name)
    columns: Table = {}
    for column in dtypes(name):
        values = getattr(table, column).tolist()
        if column in _TEXTS:
            texts = getattr(trace, _TEXTS[column])
            values = [texts[code] if code >= 0 else None for code in values]
        elif column == "series":
            values = [table.names[code] for code in values]
        elif column in ("value", "occupancy", "blocks_per_sm", "warps_per_sm"):
            values = [None if np.isnan(value) else value for value in values]
        columns[column] = values
    if name == "flows":  # at one moment, arrows have no order
        rows = sorted(zip(*columns.values(), strict=True), key=repr)
        return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=False))
    return columns


def assert_same(first: Trace, second: Trace) -> None:
    """Both hold exactly the same, codes and all."""
    for name in TABLES:
        one, other = getattr(first, name), getattr(second, name)
        for column, dtype in dtypes(name).items():
            a, b = getattr(one, column), getattr(other, column)
            assert b.dtype in (dtype, a.dtype)
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), (name, column)
    for text in TEXTS:
        owner = (first.counters, second.counters) if text == "counter_names" else (first, second)
        name = text.removeprefix("counter_")
        assert getattr(owner[0], name) == getattr(owner[1], name)
    tabular = {*TABLES, *TEXTS}
    rest = [field.name for field in fields(Trace) if field.name not in tabular]
    assert [getattr(first, name) for name in rest] == [getattr(second, name) for name in rest]
