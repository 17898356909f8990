"""The table of accelerators, and how a device is found in it by the name that a trace gives it.

Figures are dense ones (vendors like to print those with sparsity, twice as high), in ``fp16`` and
``bf16`` with fp32 sums. Which of a row's figures were found in a named source, and which could not
be, is part of the row. A device that no row names is not in the table: nothing is guessed from a
similar one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TFLOPS = ("fp32", "tf32", "fp16", "bf16", "fp8")


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One device as a program sees it; of a card that shows as two devices, a half."""

    name: str
    vendor: str
    kind: str
    """GPU, TPU or ASIC."""
    year: int
    tflops: Mapping[str, float]
    """Dense peak by dtype, in 10¹² FLOPs a second; a dtype that it lacks has no entry."""
    bandwidth_gb_s: float | None
    """Of its own memory, in 10⁹ bytes a second."""
    memory_gb: float | None
    interconnect_gb_s: float | None
    """All links together, both directions."""
    tdp_w: float | None
    source: str
    checked_on: str
    """The month in which source and figures were compared."""
    unchecked: frozenset[str]
    """Figures that no named source gave, as columns of the table (``fp8_tflops``)."""
    note: str

    def cite(self) -> str:
        """Where the figures are from, for a caption."""
        return f"datasheet figures of {self.name} ({self.source}; {self.checked_on})"


def find(device_name: str | None) -> Accelerator | None:
    """The row of a device by the name that driver and trace give it; ``None``: not in the table.

    Args:
        device_name: Such as ``NVIDIA H100 80GB HBM3`` or ``AMD Instinct MI300X``.
    """
    if not device_name:
        return None
    return next((row for sign, row in _rows() if sign.search(device_name)), None)


def accelerators() -> tuple[Accelerator, ...]:
    """All rows."""
    return tuple(row for _, row in _rows())


@cache
def _rows() -> tuple[tuple[re.Pattern[str], Accelerator], ...]:
    text = files("workbench.hardware").joinpath("accelerators.csv").read_text(encoding="utf-8")
    return tuple(
        (re.compile(row["pattern"], re.IGNORECASE), _accelerator(row))
        for row in csv.DictReader(text.splitlines())
    )


def _accelerator(row: Mapping[str, str]) -> Accelerator:
    devices = int(row["devices"])

    def number(column: str) -> float | None:
        return float(row[column]) / devices if row[column] else None

    peaks = {dtype: number(f"{dtype}_tflops") for dtype in TFLOPS}
    return Accelerator(
        name=row["name"],
        vendor=row["vendor"],
        kind=row["kind"],
        year=int(row["year"]),
        tflops={dtype: peak for dtype, peak in peaks.items() if peak is not None},
        bandwidth_gb_s=number("mem_bw_gbs"),
        memory_gb=number("mem_gb"),
        interconnect_gb_s=number("interconnect_gbs"),
        tdp_w=number("tdp_w"),
        source=row["source"],
        checked_on=row["checked_on"],
        unchecked=frozenset(row["unchecked"].split()),
        note=row["note"],
    )
