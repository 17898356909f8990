"""Axes: one unit for a whole axis, chosen from its largest value; powers of ten written out."""

from typing import Any, NamedTuple

from workbench.units import THIN_SPACE, time_text


class Scale(NamedTuple):
    """``value_ns / size`` is the number on an axis whose title names ``unit``."""

    size: float
    unit: str


def time_scale(largest_ns: float) -> Scale:
    """The unit in which the largest value of an axis reads best."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(largest_ns) >= size:
            return Scale(size, unit)
    return Scale(1.0, "ns")


def decades(title: str) -> dict[str, Any]:
    """A logarithmic axis, each power of ten written out: never ``1e+3``, ``100µ`` or ``1B``."""
    return {"title": {"text": title}, "type": "log", "dtick": 1, "tickformat": ",.1~r"}


def exact(ns: float) -> str:
    """A duration for people and to the nanosecond: ``12.3 ms (12 345 678 ns)``."""
    digits = f"{ns:,.0f}".replace(",", THIN_SPACE)
    return f"{time_text(ns)} ({digits} ns)" if abs(ns) >= 1000 else f"{digits} ns"
