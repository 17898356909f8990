"""Matrix products one by one: sizes, layout, alignment, tensor cores, speed, and what to change."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.costs.cost import UncountedError, call_of

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.costs.peaks import Peaks
    from workbench.analysis.costs.roofline import Roofline

GEMM_COLUMNS = (
    *("name", "dtype", "batch", "m", "n", "k", "layout", "alignment", "calls", "time_ns"),
    *("tflop_s", "peak_share", "tensor_core_share", "eligible", "roof_ns", "distance_ns"),
    *("advice", "saving_ns"),
)
ELIGIBLE = frozenset({"tf32", "bf16", "fp16", "fp8"})
"""Types that tensor cores take."""
WIDE = 64
"""Sizes that fill the tiles of newer tensor cores whole."""
STEP = {"fp16": 8, "bf16": 8, "fp8": 16, "tf32": 4}
"""Elements of 16 bytes: what rows must be multiples of (cuBLAS's rule for tensor cores)."""
SKINNY = 16
SMALL_NS = 20_000.0
"""Own choice: a product that takes less on a device hardly fills it."""
MANY = 8
GOOD = 0.7
"""Own choice: above this share of its roof nothing is advised."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """(m × k) · (k × n), ``batch`` times."""

    batch: int
    m: int
    n: int
    k: int


@dataclass(frozen=True, kw_only=True)
class _Product:
    """One row of the table, with what advice needs."""

    row: Mapping[str, Any]
    sizes: Sizes | None
    strides: str | None
    core: float
    """Share of its device time on tensor cores; NaN where no kernel's name tells."""
    peaks: Peaks
    steps: int

    @property
    def layout(self) -> str | None:
        return layout_of(self.row["name"], self.strides)[0]

    @property
    def between(self) -> tuple[int, ...]:
        """Elements between rows in memory: of the factors where told, and of the result."""
        if self.sizes is None:
            return ()
        told = layout_of(self.row["name"], self.strides)[1]
        return (*(told or (self.sizes.n, self.sizes.k)), self.sizes.n)

    @property
    def alignment(self) -> int | None:
        return min((min(WIDE, n & -n) for n in self.between if n > 1), default=None)


def gemm_table(found: Roofline, costs: pd.DataFrame, steps: int) -> pd.DataFrame:
    """One row a product by shape and type, largest distance to the roof first.

    Times are sums over the calls, as in the table of costs. ``layout`` tells which factor is
    transposed in memory (N or T each), ``alignment`` the largest power of two up to 64 that divides
    the sizes between rows. ``saving_ns`` is what the advice could win at most.

    Args:
        found: The operators against their roof.
        costs: The table of costs, for strides and tensor cores.
        steps: How many steps the sums are over, to tell many small products of a step.
    """
    import pandas as pd

    beside = {
        (name, shapes, dtype): (strides, share)
        for name, shapes, dtype, strides, share in zip(
            *(costs[c] for c in ("name", "shapes", "dtype", "strides", "tensor_core_share")),
            strict=True,
        )
    }
    rows: list[dict[str, Any]] = []
    for record in found.table[found.table["kind"] == "gemm"].to_dict("records"):
        row = {str(column): value for column, value in record.items()}
        strides, core = beside.get((row["name"], row["shapes"], row["dtype"]), (None, np.nan))
        made = _Product(
            row=row,
            sizes=sizes_of(row["name"], row["shapes"]),
            strides=strides if isinstance(strides, str) else None,
            core=float(core),
            peaks=found.peaks,
            steps=max(1, steps),
        )
        rows.append(_row(made))
    table = pd.DataFrame(rows, columns=list(GEMM_COLUMNS))
    for name in ("batch", "m", "n", "k", "alignment"):
        table[name] = table[name].astype("Int64")
    table["advice"] = table["advice"].astype(object).where(table["advice"].notna(), None)
    return table


def sizes_of(operator: str, shapes: str | None) -> Sizes | None:
    """The sizes of a product from its recorded shapes."""
    call = call_of(operator, shapes, [])
    base = operator.rsplit("::", 1)[-1].rstrip("_")
    try:
        if base in ("linear", "mkldnn_linear", "_linear_pointwise"):
            x, w = call.dims(0), call.dims(1)
            return Sizes(batch=1, m=math.prod(x[:-1]), n=w[0], k=x[-1])
        first = 1 if base.lstrip("_").startswith(("addmm", "baddbmm", "addbmm", "addmv")) else 0
        a, b = call.dims(first), call.dims(first + 1)
    except (UncountedError, IndexError):
        return None
    if len(a) < 2 or not b:
        return None
    batch = math.prod(a[:-2]) if len(a) > 2 else 1
    return Sizes(batch=batch, m=a[-2], n=b[-1] if len(b) > 1 else 1, k=a[-1])


def layout_of(operator: str, strides: str | None) -> tuple[str | None, tuple[int, ...]]:
    """Which factor lies transposed in memory, and the elements between rows of each."""
    try:
        steps = json.loads(strides) if strides else []
    except ValueError:
        steps = []
    first = 1 if "add" in operator else 0
    pair = steps[first : first + 2] if isinstance(steps, list) else []
    if len(pair) != 2 or not all(isinstance(s, list) and len(s) >= 2 for s in pair):
        return None, ()
    signs, apart = "", []
    for each in pair:
        rows, columns = each[-2:]
        signs += "N" if columns == 1 else "T" if rows == 1 else "?"
        apart.append(max(rows, columns))
    return signs, tuple(apart)


def _row(made: _Product) -> dict[str, Any]:
    row, sizes = made.row, made.sizes
    peak = made.peaks.flops(row["dtype"])
    advice, saving = _advice(made)
    return {
        **{name: row[name] for name in ("name", "dtype", "calls", "time_ns", "tflop_s")},
        **{name: row[name] for name in ("roof_ns", "distance_ns")},
        **{
            name: None if sizes is None else getattr(sizes, name)
            for name in ("batch", "m", "n", "k")
        },
        "layout": made.layout,
        "alignment": made.alignment,
        "peak_share": row["tflop_s"] * 1e12 / peak if peak else np.nan,
        "tensor_core_share": made.core,
        "eligible": row["dtype"] in ELIGIBLE,
        "advice": advice,
        "saving_ns": saving,
    }


def _advice(made: _Product) -> tuple[str | None, float]:
    """The first advice that fits, and the most that it could win; none near the roof."""
    distance = made.row["distance_ns"]
    if made.sizes is None or not np.isfinite(distance) or made.row["roof_share"] >= GOOD:
        return None, math.nan
    for advise in (_aligned, _contiguous, _skinny, _small):
        if (said := advise(made, made.sizes)) is not None:
            return said, distance
    return _precise(made)


def _aligned(made: _Product, _: Sizes) -> str | None:
    dtype = made.row["dtype"]
    step = STEP.get(dtype, 1)
    bad = sorted({n for n in made.between if n > SKINNY and n % step})
    if not bad:
        return None
    to = [
        f"{n} to {-(-n // (WIDE if n > WIDE else step)) * (WIDE if n > WIDE else step)}"
        for n in bad
    ]
    return f"pad {', '.join(to)}: rows of {dtype} should be multiples of {step}"


def _contiguous(made: _Product, _: Sizes) -> str | None:
    if made.layout is None or "?" not in made.layout:
        return None
    return "a factor is spread out in both directions and copied first: make it contiguous"


def _skinny(_: _Product, sizes: Sizes) -> str | None:
    if min(sizes.m, sizes.n, sizes.k) > SKINNY:
        return None
    return "a matrix times a few vectors waits for the memory: a larger batch costs little more"


def _small(made: _Product, sizes: Sizes) -> str | None:
    calls = max(1, int(made.row["calls"]))
    if made.row["time_ns"] / calls >= SMALL_NS or calls / made.steps < MANY or sizes.batch > 1:
        return None
    return f"{calls / made.steps:.0f} small products of one shape a step: join them (bmm)"


def _precise(made: _Product) -> tuple[str | None, float]:
    """Tensor cores for fp32 products that run without them, where the device has them."""
    slow, fast = made.peaks.flops("fp32"), made.peaks.flops_per_s.get("bf16")
    if made.row["dtype"] != "fp32" or made.core > 0 or not slow or not fast or fast < 2 * slow:
        return None, math.nan
    saving = max(0.0, made.row["time_ns"] - made.row["flops"] / fast * 1e9)
    return "TF32 or bf16 would use faster units", saving
