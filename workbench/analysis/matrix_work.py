"""Products, convolutions and attention by type: the work that a lower precision could speed up.

On a device each kernel counts with the type that its operator took, else with what its name tells.
A kernel that multiplies fp32 data on tensor cores is TF32. Without a device the operators' own host
time counts. Autocast casts inside an operator and calls it again, so the lowest type that any call
inside it took is what it computed in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import device_indices, work_rows
from workbench.analysis.families import MATRIX_FAMILIES, family, tensor_core
from workbench.analysis.kernel_dtypes import LOW, kernel_dtype, operator_dtype
from workbench.analysis.launches import Launches
from workbench.analysis.nesting import Nesting, ancestors, innermost, nest
from workbench.analysis.steady import counted_ranges, inside
from workbench.analysis.steps import Steps
from workbench.trace.table import Kind, Trace

OPERATORS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "gemm",
        re.compile(
            r"^aten::(_scaled_)?(mm|addmm|bmm|baddbmm|addbmm|_addmm_activation)$"
            r"|^mkldnn::_linear_pointwise|^aten::mkldnn_linear$"
        ),
    ),
    (
        "convolution",
        re.compile(
            r"^aten::(cudnn_|miopen_|mkldnn_|_)?convolution(_backward|_overrideable|_transpose)?$"
            r"|^mkldnn::_convolution_pointwise"
        ),
    ),
    (
        "attention",
        re.compile(r"^aten::_?(scaled_dot_product|flash|efficient|cudnn)\w*attention\w*$"),
    ),
)
_DTYPES: tuple[str | None, ...] = ("fp8", "bf16", "fp16", "half", "tf32", "fp32", None)
"""Lowest first, so that the lowest type inside an operator is the one that it computed in."""
UNKNOWN = len(_DTYPES) - 1
Ranges = tuple[NDArray[np.int64], NDArray[np.int64]] | None

Key = tuple[str, str | None, bool | None]
"""Family, type, and whether on tensor cores; ``None`` where nothing tells."""


@dataclass(frozen=True, kw_only=True)
class MatrixWork:
    """Matrix work of one device, or of the host without one, in the steps that count."""

    device: int | None
    ns: Mapping[Key, int]
    time_ns: int
    """All device time of the same steps; without a device the length of these steps."""
    steps: int

    def total(
        self,
        *,
        families: tuple[str, ...] = MATRIX_FAMILIES,
        dtypes: frozenset[str | None] | None = None,
        tensor_core: frozenset[bool | None] | None = None,
    ) -> int:
        """Nanoseconds of the chosen families, types and answers about tensor cores."""
        return sum(
            ns
            for (kind, dtype, core), ns in self.ns.items()
            if kind in families
            and (dtypes is None or dtype in dtypes)
            and (tensor_core is None or core in tensor_core)
        )

    @property
    def low_ns(self) -> int:
        """Time below fp32."""
        return self.total(dtypes=frozenset(LOW))

    @property
    def share(self) -> float:
        """Share of all the time."""
        return min(1.0, self.total() / self.time_ns) if self.time_ns > 0 else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Operators:
    """Matrix operators, nested in each other."""

    nesting: Nesting
    kinds: NDArray[np.int64]
    """Position of each one's family in ``OPERATORS``."""
    dtypes: NDArray[np.int64]
    """Position in ``_DTYPES`` of the lowest type inside its outermost operator."""


def matrix_work(trace: Trace, launches: Launches, steps: Steps | None) -> tuple[MatrixWork, ...]:
    """The matrix work of every device; of the host's operators where no device was recorded."""
    operators, ranges = _operators(trace), counted_ranges(steps)
    devices = device_indices(trace)
    if not devices:
        found = _on_host(trace, operators, ranges)
        return () if found is None else (found,)
    return tuple(_on_device(trace, launches, operators, ranges, device) for device in devices)


def _operators(trace: Trace) -> _Operators:
    events = trace.events
    known = {
        code: place
        for code, name in enumerate(trace.names)
        for place, (_, pattern) in enumerate(OPERATORS)
        if pattern.match(name)
    }
    codes = np.fromiter(known, np.int32, len(known))
    rows = np.flatnonzero((events.kind == Kind.OPERATOR) & np.isin(events.name, codes))
    rows = rows[np.lexsort((-events.end[rows], events.ts[rows]))]
    nesting = nest(rows, events.lane[rows], events.ts[rows], events.end[rows])
    kinds = np.array([known[int(code)] for code in events.name[nesting.row]], np.int64)
    own = np.full(len(nesting.row), UNKNOWN, np.int64)
    types = events.types[nesting.row]
    for code in np.unique(types[types >= 0]).tolist():
        own[types == code] = _DTYPES.index(operator_dtype(trace.types[code]))
    root = np.arange(len(own))
    for at, above in ancestors(nesting.parent):
        root[at] = above
    lowest = np.full(len(own), UNKNOWN, np.int64)
    np.minimum.at(lowest, root, own)
    return _Operators(nesting=nesting, kinds=kinds, dtypes=lowest[root])


def _on_host(trace: Trace, operators: _Operators, ranges: Ranges) -> MatrixWork | None:
    nesting = operators.nesting
    chosen = np.flatnonzero((nesting.parent < 0) & inside(ranges, nesting.start))
    if not len(chosen):
        return None
    key = operators.kinds[chosen] * len(_DTYPES) + operators.dtypes[chosen]
    spent = (nesting.end - nesting.start)[chosen]
    sums: dict[Key, int] = {}
    for number in np.unique(key).tolist():
        kind, dtype = divmod(number, len(_DTYPES))
        sums[OPERATORS[kind][0], _DTYPES[dtype], None] = int(spent[key == number].sum())
    if ranges is not None:
        time = int((ranges[1] - ranges[0]).sum())
    else:
        rows = trace.events.rows(Kind.OPERATOR)
        time = int(trace.events.end[rows].max() - trace.events.ts[rows].min())
    return MatrixWork(device=None, ns=sums, time_ns=time, steps=_count(ranges))


def _on_device(
    trace: Trace, launches: Launches, operators: _Operators, ranges: Ranges, device: int
) -> MatrixWork:
    events = trace.events
    work = work_rows(trace, device)
    work = work[launches.launch[work] >= 0]
    work = work[inside(ranges, events.ts[launches.launch[work]])]
    call = launches.launch[work]
    taken = np.full(len(work), UNKNOWN, np.int64)
    if len(operators.dtypes):
        within = innermost(operators.nesting, events.lane[call], events.ts[call])
        taken[within >= 0] = operators.dtypes[within[within >= 0]]
    keys, index = np.unique(
        events.name[work].astype(np.int64) * len(_DTYPES) + taken, return_inverse=True
    )
    spent = np.zeros(len(keys), np.int64)
    np.add.at(spent, index, events.dur[work])
    sums: dict[Key, int] = {}
    for number, ns in zip(keys.tolist(), spent.tolist(), strict=True):
        code, dtype = divmod(number, len(_DTYPES))
        name = trace.names[code]
        kind = family(name)
        if kind in MATRIX_FAMILIES:
            key = (kind, *_told(name, _DTYPES[dtype]))
            sums[key] = sums.get(key, 0) + ns
    return MatrixWork(
        device=device, ns=sums, time_ns=int(events.dur[work].sum()), steps=_count(ranges)
    )


def _count(ranges: Ranges) -> int:
    return 0 if ranges is None else len(ranges[0])


def _told(name: str, taken: str | None) -> tuple[str | None, bool | None]:
    """Type and tensor cores of a kernel, by its operator's inputs and by its name."""
    core, named = tensor_core(name), kernel_dtype(name)
    if taken in (None, "fp32") and named == "tf32":
        return "tf32", True
    if taken == "fp32" and core and named in (None, "fp32"):
        # AMD's matrix cores multiply fp32 in full (Tensile's kernels, by their MI…x…x1 tiles).
        return "fp32" if name.startswith("Cijk_") else "tf32", True
    return taken or named, core
