"""What a program computed and moved, operator by operator, with the time that it took.

Time is that of the device work which an operator launched; without a device the operator's own
time on the host. What has no count stays in the table with the reason, so that the share of time
that is explained is always known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.communication_names import is_communication
from workbench.analysis.costs.calls import WRAPPER, CostedCalls, Known, costed_calls
from workbench.analysis.costs.cost import Cost, UncountedError, call_of
from workbench.analysis.families import tensor_core
from workbench.analysis.kernel_dtypes import kernel_dtype
from workbench.analysis.operators import work_holders
from workbench.analysis.steady import counted_ranges, inside

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.launches import Launches
    from workbench.analysis.steps import Steps
    from workbench.trace.table import Trace

Values = NDArray[np.int64]
COST_COLUMNS = (
    *("name", "shapes", "kind", "dtype", "calls", "time_ns", "flops", "recomputed", "bytes"),
    *("tensor_core_share", "strides", "reason"),
)
OUTSIDE = "(outside any operator)"
NO_OPERATOR = "no operator was recorded around it (a graph, a compiled kernel, another library)"
BETWEEN_RANKS = "communication between ranks"


@dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """The work of the steps that count."""

    table: pd.DataFrame
    """One row an operator, its shapes and type, longest first; numbers are sums over its calls."""
    steps: int
    """How many steps the sums are over; 0 where none is marked."""
    time_ns: int
    """All device time of these steps; without a device all time inside operators."""
    counted_ns: int
    """The part of it whose cost is known."""
    on_device: bool
    tokens_per_step: float | None = None
    """Indices that one table of embeddings is asked for; ``None`` without batches of sequences."""

    @property
    def coverage(self) -> float | None:
        """Share of the time with a count; ``None`` without any time."""
        return self.counted_ns / self.time_ns if self.time_ns else None

    @property
    def flops(self) -> int | None:
        """All FLOPs; ``None`` where no operator that multiplies was counted."""
        known = self.table["flops"].dropna()
        total = int(known.sum()) if len(known) else 0
        return total or None

    @property
    def uncounted(self) -> dict[str, int]:
        """Nanoseconds without a count by reason, longest first."""
        missing = self.table[self.table["reason"].notna()]
        sums = missing.groupby("reason")["time_ns"].sum().sort_values(ascending=False)
        return {str(reason): int(ns) for reason, ns in sums.items() if ns > 0}


def find_costs(
    trace: Trace, launches: Launches, steps: Steps | None, known: Known | None = None
) -> Costs | None:
    """Count the work of the steps that count; ``None`` where no operator was recorded.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        steps: The steps; ``None`` for the whole trace.
        known: Costs that a recorder found, for operators that the trace says too little of.
    """
    calls = costed_calls(trace, launches, known)
    if not len(calls.group):
        return None
    ranges = counted_ranges(steps)
    chosen = inside(ranges, calls.found.nesting.start)
    work, holder = work_holders(trace, launches, calls.found.nesting)
    on_device = len(work) > 0
    rows = _Rows(calls)
    rows.add_calls(chosen)
    if on_device:
        launch = launches.launch[work]
        kept = inside(ranges, trace.events.ts[np.maximum(launch, 0)]) & (launch >= 0)
        if ranges is None:  # work whose launch lies before the recording is of no step
            kept |= launch < 0
        rows.add_work(trace, work[kept], holder[kept])
    else:
        rows.add_host(np.where(chosen, calls.found.host_self, 0))
    table = rows.table()
    counted = table["reason"].isna()
    return Costs(
        table=table,
        steps=0 if ranges is None else len(ranges[0]),
        time_ns=int(table["time_ns"].sum()),
        counted_ns=int(table["time_ns"][counted].sum()),
        on_device=on_device,
        tokens_per_step=_tokens(calls, chosen, 0 if ranges is None else len(ranges[0])),
    )


def _tokens(calls: CostedCalls, chosen: NDArray[np.bool_], steps: int) -> float | None:
    """The most that one table is asked for in a step: token and position tables do not add up."""
    most = 0.0
    for number, (name, shapes) in enumerate(calls.keys):
        if name == "aten::embedding" and (asked := _asked(shapes)):
            own = chosen & (calls.group == number) & ~calls.again & (calls.found.calls > 0)
            most = max(most, asked * int(own.sum()) / max(steps, 1))
    return most or None


def _asked(shapes: str | None) -> int:
    """How many indices, of a batch of sequences (two dimensions, more than one token each)."""
    call = call_of("aten::embedding", shapes, [])
    try:
        found = call.dims(1)
    except UncountedError:
        return 0
    return found[0] * found[1] if len(found) == 2 and found[1] > 1 else 0


class _Rows:
    """Sums by operator, shapes and type."""

    def __init__(self, calls: CostedCalls) -> None:
        self._calls = calls
        self._sums: dict[tuple[str, str | None, str | None, str | None], dict[str, Any]] = {}
        size = len(calls.keys)
        self._count = np.zeros(size, np.int64)
        self._again = np.zeros(size, np.int64)
        self._time = np.zeros(size, np.int64)
        self._wrapped = np.zeros(size, np.int64)
        self._core = np.zeros(size, np.int64)
        self._told = np.zeros(size, np.int64)
        self._tf32 = np.zeros(size, np.int64)
        self._outside: dict[str, int] = {}

    def add_calls(self, chosen: NDArray[np.bool_]) -> None:
        calls = self._calls
        own = chosen & (calls.counted | (calls.found.calls > 0))
        np.add.at(self._count, calls.group[own], 1)
        np.add.at(self._again, calls.group[own & calls.again], 1)

    def add_host(self, own: Values) -> None:
        self._add(np.arange(len(own)), own)

    def add_work(self, trace: Trace, work: Values, holder: Values) -> None:
        events, calls = trace.events, self._calls
        spent = events.dur[work].astype(np.int64)
        moved = np.array([is_communication(name) for name in trace.names], bool)[events.name[work]]
        self._outside[BETWEEN_RANKS] = int(spent[moved].sum())
        self._outside[NO_OPERATOR] = int(spent[~moved & (holder < 0)].sum())
        kept = ~moved & (holder >= 0)
        work, holder, spent = work[kept], holder[kept], spent[kept]
        self._add(holder, spent)
        group = calls.group[calls.owner[holder]]
        core = np.array([{True: 1, False: 0, None: -1}[tensor_core(n)] for n in trace.names])
        tf32 = np.array([_multiplies_tf32(name) for name in trace.names], bool)
        using = core[events.name[work]]
        np.add.at(self._core, group[using == 1], spent[using == 1])
        np.add.at(self._told, group[using >= 0], spent[using >= 0])
        fast = tf32[events.name[work]]
        np.add.at(self._tf32, group[fast], spent[fast])

    def _add(self, at: Values, spent: Values) -> None:
        """Time of records, given to the record that answers for them."""
        calls = self._calls
        owner = calls.owner[at]
        whole = calls.counted[owner]
        np.add.at(self._time, calls.group[owner[whole]], spent[whole])
        np.add.at(self._wrapped, calls.group[owner[~whole]], spent[~whole])

    def table(self) -> pd.DataFrame:
        import pandas as pd

        for number, (key, cost) in enumerate(zip(self._calls.keys, self._calls.costs, strict=True)):
            if self._count[number] or self._time[number] or self._wrapped[number]:
                self._add_group(number, key, cost)
        for reason, ns in self._outside.items():
            if ns:
                self._row((OUTSIDE, None, None, None), reason)["time_ns"] += ns
        rows = sorted(self._sums.values(), key=lambda row: (-row["time_ns"], -(row["flops"] or 0)))
        frame = pd.DataFrame(rows, columns=[*COST_COLUMNS, "told", "core"])
        share = np.divide(
            frame["core"].to_numpy(np.float64),
            frame["told"].to_numpy(np.float64),
            out=np.full(len(frame), np.nan),
            where=frame["told"].to_numpy() > 0,
        )
        frame["tensor_core_share"] = share
        for name in ("flops", "recomputed", "bytes"):
            frame[name] = frame[name].astype("Int64")
        return frame[list(COST_COLUMNS)]

    def _add_group(self, number: int, key: tuple[str, str | None], cost: Cost | str) -> None:
        """A group of like calls: its counted calls in one row, time of wrappers in another."""
        operator, shapes = key
        if isinstance(cost, str):
            row = self._row((operator, shapes, None, None), cost)
            row["calls"] += int(self._count[number])
            row["time_ns"] += int(self._wrapped[number] + self._time[number])
            return
        counted = int(np.sum(self._calls.counted & (self._calls.group == number)))
        if cost.kind != "view" and counted:
            self._add_counted(number, key, cost)
        if self._wrapped[number]:
            row = self._row((operator, shapes, WRAPPER.kind, None), None)
            row["time_ns"] += int(self._wrapped[number])
            row["calls"] += 0 if counted else int(self._count[number])

    def _add_counted(self, number: int, key: tuple[str, str | None], cost: Cost) -> None:
        dtype = cost.dtype
        if dtype == "fp32" and 2 * self._tf32[number] > self._time[number]:
            dtype = "tf32"
        row = self._row((*key, cost.kind, dtype), None)
        calls = int(self._count[number])
        row["calls"] += calls
        row["time_ns"] += int(self._time[number])
        row["flops"] += cost.flops * calls
        again = int(self._again[number])
        row["recomputed"] += cost.recomputed * (calls - again) + cost.flops * again
        row["strides"] = row["strides"] or self._calls.strides[number]
        row["bytes"] += cost.bytes * calls
        row["told"] += int(self._told[number])
        row["core"] += int(self._core[number])

    def _row(
        self, key: tuple[str, str | None, str | None, str | None], reason: str | None
    ) -> dict[str, Any]:
        name, shapes, kind, dtype = key
        empty = 0 if reason is None else None
        return self._sums.setdefault(
            (name, shapes, kind or reason, dtype),
            {
                **{"name": name, "shapes": shapes, "kind": kind, "dtype": dtype, "calls": 0},
                **{"time_ns": 0, "flops": empty, "recomputed": empty, "bytes": empty},
                **{"strides": None, "reason": reason, "told": 0, "core": 0},
            },
        )


def _multiplies_tf32(name: str) -> bool:
    """Whether a kernel multiplies fp32 data on tensor cores, unless it is AMD's, in full."""
    told = kernel_dtype(name)
    if told == "tf32":
        return True
    core = tensor_core(name) is True
    return core and told in (None, "fp32") and not name.startswith("Cijk_")
