"""Tables of the summary document as JSON: times in microseconds, what was not measured as null."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def kernels(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """Kernels by name; ``None``: no device was recorded."""
    if table is None:
        return None
    return [
        {
            "device": int(row.device),
            "name": row.name,
            "family": row.family,
            "calls": int(row.calls),
            "total_us": row.total_ns / 1000,
            "median_us": row.median_ns / 1000,
            "share": _number(row.share),
            "tensor_core": None if row.tensor_core is None else bool(row.tensor_core),
            "occupancy": _number(row.occupancy),
            "blocks_per_sm": _number(row.blocks_per_sm),
            "registers": _number(row.registers),
            "shared_memory_bytes": _number(row.shared_memory_bytes),
        }
        for row in _records(table)
    ]


def communication(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """An empty list says that no collective ran, ``None`` that nobody can know."""
    if table is None:
        return None
    return [
        {
            "collective": row.collective,
            "group": row.group,
            "calls": int(row.calls),
            "bytes": _whole(row.bytes),
            "total_us": row.total_ns / 1000,
            "exposed_us": row.exposed_ns / 1000,
            "wait_us": microseconds(_whole(row.wait_ns)),
            "transfer_us": row.transfer_ns / 1000,
            "bus_gb_s": _number(row.bus_gb_s),
            "dtype": row.dtype,
            "hidden_us": row.hidden_ns / 1000,
        }
        for row in _records(table)
    ]


def operators(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """Operators by name; ``None``: none was recorded."""
    if table is None:
        return None
    return [
        {
            "name": row.name,
            "calls": int(row.calls),
            "host_self_us": row.host_self_ns / 1000,
            "host_total_us": row.host_total_ns / 1000,
            "device_us": microseconds(_number(row.device_ns)),
        }
        for row in _records(table)
    ]


def _records(table: pd.DataFrame) -> list[Any]:
    return list(table.itertuples(index=False, name="Row"))


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return None if math.isnan(number) else number


def _whole(value: Any) -> int | None:
    import pandas as pd

    return None if pd.isna(value) else int(value)


def microseconds(ns: float | None) -> float | None:
    """The same in microseconds; ``None`` stays."""
    return None if ns is None else ns / 1000
