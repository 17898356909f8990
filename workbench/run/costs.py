"""Costs of one rank: what its operators compute and move, against what its device could do."""

from __future__ import annotations

import statistics
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.costs.join import Costs
    from workbench.analysis.costs.peaks import Peaks
    from workbench.analysis.costs.roofline import Roofline
    from workbench.analysis.costs.utilisation import Utilisation
    from workbench.run.rank import RankAnalysis

PER_STEP = (
    "calls",
    "time_ns",
    "flops",
    "recomputed",
    "bytes",
    "roof_ns",
    "distance_ns",
    "saving_ns",
    *("self_ns", "forward_ns", "backward_ns", "forward_flops", "backward_flops"),
    *("forward_bytes", "backward_bytes"),
)
"""Sums that are given per step."""
HOW = (
    "record with shapes (wb.Record(shapes=True); of a trace from elsewhere record_shapes=True): "
    "the work of operators is counted from them"
)
MEASURE = "workbench.machine.peaks.measure() measures it in seconds, for the Runs that follow"


class CostAnswers:
    """Answers about one rank, each computed when first asked for."""

    def __init__(self, rank: RankAnalysis) -> None:
        self._rank = rank
        self._peaks: Peaks | None = None

    @cached_property
    def costs(self) -> Costs | None:
        """The counted operators of the steps that count."""
        from workbench.analysis.costs.join import find_costs

        rank = self._rank
        record = rank.record
        return find_costs(rank.trace, rank.launches, rank.steps, known_costs(record))

    @property
    def peaks(self) -> Peaks | None:
        """The peaks that were given, else those of the Run's machine, else of the datasheet."""
        return self._peaks or self._found_peaks

    @peaks.setter
    def peaks(self, found: Peaks | None) -> None:
        self._peaks = found
        for name in ("roofline", "gemms", "utilisation"):
            self.__dict__.pop(name, None)

    @cached_property
    def _found_peaks(self) -> Peaks | None:
        from workbench.analysis.costs.peaks import Peaks, peaks_from
        from workbench.hardware import find

        record, rank = self._rank.record, self._rank
        if record is not None and record.peaks:
            return peaks_from(record.peaks)
        if not rank.device_indices:
            return None
        known = find(self.device_name)
        if known is None:
            return None
        rate = known.bandwidth_gb_s
        return Peaks(
            device=known.name,
            flops_per_s={dtype: peak * 1e12 for dtype, peak in known.tflops.items()},
            bytes_per_s=None if rate is None else rate * 1e9,
            source=known.cite(),
            measured=False,
        )

    @property
    def device_name(self) -> str | None:
        """The first device with work, as its driver names it."""
        from workbench.run.summary import device_of

        if not self._rank.device_indices:
            return None
        device = device_of(self._rank, self._rank.device_indices[0])
        return None if device is None else device.name or None

    @property
    def no_peaks(self) -> str:
        """Why there is no roof."""
        if not self._rank.device_indices:
            return f"what this CPU can do at most was not measured: {MEASURE}"
        if self.device_name is None:
            return "the trace does not name its device"
        return f"{self.device_name} is not in the table of accelerators, and was not measured here"

    @property
    def no_costs(self) -> str:
        """Why nothing was counted."""
        found = self.costs
        if found is None:
            return "no operator was recorded"
        return HOW if found.flops is None else ""

    @property
    def no_roof(self) -> str:
        """Why no operator is held against a roof."""
        if self.no_costs:
            return self.no_costs
        if self.peaks is None:
            return self.no_peaks
        return "of no operator with a time both work and roof are known"

    @cached_property
    def roofline(self) -> Roofline | None:
        """The operators against the roof of the device."""
        from workbench.analysis.costs.roofline import roofline

        if self.costs is None or self.peaks is None:
            return None
        found = roofline(self.costs, self.peaks)
        return found if found.time_ns else None

    @cached_property
    def gemms(self) -> pd.DataFrame | None:
        """Matrix products one by one, per step."""
        from workbench.analysis.costs.gemms import gemm_table

        if self.roofline is None or self.costs is None:
            return None
        table = gemm_table(self.roofline, self.costs.table, self.costs.steps)
        return per_step(table, self.costs.steps) if len(table) else None

    @cached_property
    def by_module(self) -> pd.DataFrame | None:
        """Time, FLOPs and bytes by module, per step."""
        from workbench.analysis.costs.by_module import module_costs
        from workbench.analysis.costs.calls import costed_calls

        rank, costs = self._rank, self.costs
        if costs is None:
            return None
        record = rank.record
        told = (record.cost_step if record is not None else None) or {}
        found = module_costs(
            rank.trace,
            rank.launches,
            rank.steps,
            costed_calls(rank.trace, rank.launches, known_costs(record)),
            noted=None if record is None else record.costs,
            modules=[str(path) for path in told.get("modules") or ()],
        )
        return None if found is None else per_step(found, costs.steps)

    @property
    def no_modules(self) -> str:
        """Why nothing is known by module."""
        if self.costs is None:
            return "no operator was recorded"
        record = self._rank.record
        told = None if record is None else record.cost_step
        if told is not None and told.get("reason"):
            return f"one more step, which tells them, was not recorded: {told['reason']}"
        if told is not None:
            return "the steps of the trace do not call what one more step called"
        return "the trace holds no module: wb.profile finds them by one more step with its shapes"

    @cached_property
    def utilisation(self) -> Utilisation:
        """HFU, MFU, samples and tokens a second; what is missing has its reason."""
        from workbench.analysis.costs.utilisation import utilisation

        rank = self._rank
        step, of_record = self.step_ns
        return utilisation(
            self.costs,
            self.peaks,
            step_ns=step,
            step_of_record=of_record,
            window_ns=None if rank.window is None else rank.window.length,
            samples_per_step=None if rank.record is None else rank.record.samples_per_step,
            no_costs=self.no_costs or HOW,
            no_peaks=self.no_peaks,
        )

    @property
    def step_ns(self) -> tuple[float | None, bool]:
        """Median step without the profiler, else under it; and which of the two it is."""
        rank = self._rank
        if rank.record_step_ns:
            return rank.record_step_ns, True
        steps = rank.steps
        times = [] if steps is None else steps.time_ns[steps.warmup :].tolist()
        return (statistics.median(times) if times else None), False

    @property
    def cost_table(self) -> pd.DataFrame | None:
        """Operators by shape and type, per step; ``None`` without operators."""
        return None if self.costs is None else per_step(self.costs.table, self.costs.steps)

    @property
    def roof_table(self) -> pd.DataFrame | None:
        """Distance to the roof by operator, per step."""
        found = self.roofline
        return None if found is None else per_step(found.table, found.steps)


def per_step(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """Sums as means a step; over the whole window where no step is marked (``attrs['steps']``)."""
    made = table.copy()
    for name in PER_STEP:
        if name in made and steps > 1:
            made[name] = made[name].astype("Float64" if str(made[name].dtype) == "Int64" else float)
            made[name] = made[name] / steps
    made.attrs["steps"] = steps
    return made


def known_costs(record: Any) -> dict[tuple[str, str], Any] | None:
    """Costs of operators that a recorder saw with all their inputs and results."""
    from workbench.analysis.costs.cost import Cost
    from workbench.analysis.costs.formulas import cost_of_noted

    if record is None or not record.costs:
        return None
    found: dict[tuple[str, str], Any] = {}
    several: set[tuple[str, str]] = set()
    for call in record.costs:
        try:
            key = (str(call["name"]), str(call["key"]))
            cost = cost_of_noted(call)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # edited by hand
        if isinstance(cost, Cost) and found.setdefault(key, cost) != cost:
            several.add(key)  # of another type: the trace does not say which
    return {key: cost for key, cost in found.items() if key not in several}
