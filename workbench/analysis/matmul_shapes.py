"""Matrix products in half precision whose sizes the fast kernels do not like.

What counts is how far rows (or columns) lie apart in memory: of both factors and of the result. The
number of tokens that a batch happens to have is none of these for a layer's products, whatever the
shapes alone seem to say.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.families import family
from workbench.analysis.launches import Launches
from workbench.analysis.operator_shapes import decoded
from workbench.analysis.steady import counted_ranges, inside
from workbench.analysis.steps import Steps
from workbench.trace.table import DEVICE_WORK, Kind, Trace

PRODUCT = re.compile(r"^aten::(_scaled_)?(mm|addmm|bmm|baddbmm)$")
HALF = re.compile(r"half|bfloat16|float16", re.IGNORECASE)
HALF_KERNEL = re.compile(
    r"bf16|fp16|(?<!t)f16(?!f)|hgemm|h(16816|1688|884)|s(16816|1688)gemm_(fp|bf)16|bfloat16|__half"
    r"|_(BBS|HHS|HSS|BSS)_",
    re.IGNORECASE,
)
"""Kernels of matrix products in half precision, where no types were recorded."""
MULTIPLE = 8
"""Sizes that tensor cores take whole, in elements of two bytes (torch's pattern matcher)."""
SMALLEST = 8
"""A product with a smaller size is a matrix times a few vectors: it waits for memory, and
alignment does not matter (own choice)."""


@dataclass(frozen=True, kw_only=True)
class Misaligned:
    """One shape of a matrix product with a size that is no multiple of 8."""

    operator: str
    sizes: tuple[int, int, int]
    """m, k, n of (m × k) · (k × n)."""
    bad: tuple[int, ...]
    """The sizes between rows (or columns) in memory that are no multiple of 8."""
    calls: int
    ns: int
    """Device time of its kernels; without a device the host time of the operator."""


@dataclass(frozen=True, kw_only=True)
class MatmulShapes:
    """Matrix products in the steps that count."""

    recorded: bool
    """Whether any product has its shapes."""
    half_ns: int | None
    """Time of products in half precision; by the kernels' names where shapes are missing."""
    misaligned: tuple[Misaligned, ...]
    """Longest first."""
    time_ns: int
    """All device time of the same steps; without a device all of their host time."""
    steps: int


def matmul_shapes(trace: Trace, launches: Launches, steps: Steps | None) -> MatmulShapes | None:
    """Weigh the matrix products by shape; ``None`` when the trace shows none."""
    events = trace.events
    products = trace.name_codes(lambda name: PRODUCT.match(name) is not None)
    rows = np.flatnonzero((events.kind == Kind.OPERATOR) & np.isin(events.name, products))
    ranges = counted_ranges(steps)
    rows = rows[inside(ranges, events.ts[rows])]
    if not len(rows):
        return None
    work = events.rows(*DEVICE_WORK)
    work = work[launches.launch[work] >= 0]
    work = work[inside(ranges, events.ts[launches.launch[work]])]
    spent = _device_time(trace, launches, rows, work) if len(work) else events.dur[rows]
    recorded = bool((events.shapes[rows] >= 0).any())
    weighed, bad = _weigh(trace, rows, spent)
    half: int | None = weighed
    if not recorded:
        half = _half_by_name(trace, work) if len(work) else None
    time = int(events.dur[work].sum()) if len(work) else _host_time(trace, ranges)
    return MatmulShapes(
        recorded=recorded,
        half_ns=half,
        misaligned=tuple(sorted(bad, key=lambda each: -each.ns)),
        time_ns=time,
        steps=0 if ranges is None else len(ranges[0]),
    )


def _device_time(
    trace: Trace, launches: Launches, rows: NDArray[np.intp], work: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Per product, the device work launched inside it; products do not hold one another."""
    events = trace.events
    spent = np.zeros(len(rows), np.int64)
    call = launches.launch[work]
    for lane in np.unique(events.lane[rows]).tolist():
        here = np.flatnonzero(events.lane[rows] == lane)
        mine = np.flatnonzero(events.lane[call] == lane)
        at = np.searchsorted(events.ts[rows[here]], events.ts[call[mine]], "right") - 1
        held = (at >= 0) & (events.ts[call[mine]] < events.end[rows[here]][np.maximum(at, 0)])
        np.add.at(spent, here[at[held]], events.dur[work[mine[held]]])
    return spent


def _weigh(
    trace: Trace, rows: NDArray[np.intp], spent: NDArray[np.int64]
) -> tuple[int, list[Misaligned]]:
    events = trace.events
    columns = (events.name, events.shapes, events.types, events.strides)
    keys = np.stack([column[rows].astype(np.int64) for column in columns]).T
    groups, index = np.unique(keys, axis=0, return_inverse=True)
    calls = np.bincount(index.ravel(), minlength=len(groups))
    time = np.zeros(len(groups), np.int64)
    np.add.at(time, index.ravel(), spent)
    half, found = 0, []
    for number, (name, shape, kind, stride) in enumerate(groups.tolist()):
        if shape < 0 or kind < 0:
            continue
        sizes = _sizes(trace.names[name], trace.shapes[shape], trace.types[kind])
        if sizes is None:
            continue
        ns = int(time[number])
        half += ns
        strides = trace.strides[stride] if stride >= 0 else ""
        bad = tuple(n for n in _apart(trace.names[name], sizes, strides) if n % MULTIPLE)
        if min(sizes) >= SMALLEST and bad:
            found.append(
                Misaligned(
                    operator=trace.names[name],
                    sizes=sizes,
                    bad=tuple(dict.fromkeys(bad)),
                    calls=int(calls[number]),
                    ns=ns,
                )
            )
    return half, found


@lru_cache(maxsize=4096)
def _sizes(operator: str, shapes: str, types: str) -> tuple[int, int, int] | None:
    """m, k and n of a product in half precision; ``None`` for any other."""
    first = 1 if "add" in operator else 0
    dims, names = decoded(shapes), decoded(types)
    if len(dims) < first + 2 or len(names) < first + 2:
        return None
    a, b = dims[first], dims[first + 1]
    if not HALF.search(str(names[first])) or not _matrix(a) or not _matrix(b):
        return None
    return (a[-2], a[-1], b[-1]) if a[-1] == b[-2] else None


def _apart(operator: str, sizes: tuple[int, int, int], strides: str) -> list[int]:
    """Elements from one row (or column) to the next: of the result, and where told of the factors.

    A factor whose rows and columns are both spread out is copied first, and says nothing.
    """
    first = 1 if "add" in operator else 0
    apart = [sizes[2]]
    for steps in decoded(strides)[first : first + 2]:
        if _matrix(steps) and 1 in steps[-2:]:
            apart.append(max(steps[-2:]))
    return apart


def _matrix(dims: Any) -> bool:
    return isinstance(dims, list) and len(dims) >= 2 and all(isinstance(n, int) for n in dims)


def _half_by_name(trace: Trace, work: NDArray[np.intp]) -> int:
    codes = trace.name_codes(lambda name: HALF_KERNEL.search(name) is not None)
    codes = np.array([c for c in codes if family(trace.names[c]) == "gemm"], np.int32)
    return int(trace.events.dur[work[np.isin(trace.events.name[work], codes)]].sum())


def _host_time(trace: Trace, ranges: tuple[NDArray[np.int64], NDArray[np.int64]] | None) -> int:
    if ranges is not None:
        return int((ranges[1] - ranges[0]).sum())
    rows = trace.events.rows(Kind.OPERATOR)
    return int(trace.events.end[rows].max() - trace.events.ts[rows].min())
