"""How much of what the device could compute a program uses: HFU and MFU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.analysis.costs.join import Costs
    from workbench.analysis.costs.peaks import Peaks


@dataclass(frozen=True, kw_only=True)
class Utilisation:
    """FLOPs against the peak of the types that computed them; ``None`` with its reason."""

    flops_per_step: float | None
    """Of the window, where no step has a time."""
    model_flops_per_step: float | None
    """Without what was computed again: checkpointed regions, attention's scores."""
    step_ns: float | None
    step_of_record: bool
    """Whether the step was timed without the profiler."""
    hfu: float | None
    """Hardware FLOPs utilisation: all FLOPs, those computed again too."""
    mfu: float | None
    """Model FLOPs utilisation."""
    coverage: float | None
    """Share of the time whose operators were counted: of a low one the figures are lower bounds."""
    samples_per_s: float | None
    tokens_per_s: float | None
    peaks: str | None
    """Which peaks were used."""
    reasons: dict[str, str]
    """Why a figure is missing, by its name."""

    def __repr__(self) -> str:
        from workbench.units import share_text, significant

        known = [("HFU", self.hfu), ("MFU", self.mfu)]
        said = [f"{name} {share_text(value)}" for name, value in known if value is not None]
        rates = (("samples/s", self.samples_per_s), ("tokens/s", self.tokens_per_s))
        said += [f"{significant(rate)} {name}" for name, rate in rates if rate is not None]
        said += [f"{name}: not measured ({why})" for name, why in self.reasons.items()]
        return " · ".join(said)


def utilisation(
    costs: Costs | None,
    peaks: Peaks | None,
    *,
    step_ns: float | None,
    step_of_record: bool,
    window_ns: float | None,
    samples_per_step: float | None,
    no_costs: str,
    no_peaks: str,
) -> Utilisation:
    """Σ over types of FLOPs ÷ peak, ÷ the time of a step."""
    reasons: dict[str, str] = {}
    flops = again = None
    busy: dict[str, float | None] = {"hfu": None, "mfu": None}
    if costs is None or costs.flops is None:
        reasons |= dict.fromkeys(("hfu", "mfu"), no_costs)
    elif not (whole := step_ns if costs.steps and step_ns else window_ns):
        reasons |= dict.fromkeys(("hfu", "mfu"), "no step and no window was recorded")
    else:
        steps = costs.steps if costs.steps and step_ns else 1
        flops = costs.flops / steps
        again = float(costs.table["recomputed"].fillna(0).sum()) / steps
        busy, why = _shares(costs, peaks, steps * whole, no_peaks)
        reasons |= why
    rate = None if step_ns is None or not samples_per_step else samples_per_step / step_ns * 1e9
    if rate is None:
        reasons["samples_per_s"] = "nobody told how many samples a step takes"
    tokens = None if costs is None or not costs.steps else costs.tokens_per_step
    if tokens is None:
        reasons["tokens_per_s"] = "no table of embeddings was asked for a batch of sequences"
    return Utilisation(
        flops_per_step=flops,
        model_flops_per_step=None if flops is None or again is None else flops - again,
        step_ns=step_ns,
        step_of_record=step_of_record,
        hfu=busy["hfu"],
        mfu=busy["mfu"],
        coverage=None if costs is None else costs.coverage,
        samples_per_s=rate,
        tokens_per_s=None if tokens is None or not step_ns else tokens / step_ns * 1e9,
        peaks=None if peaks is None else peaks.source,
        reasons=reasons,
    )


def _shares(
    costs: Costs, peaks: Peaks | None, time_ns: float, no_peaks: str
) -> tuple[dict[str, float | None], dict[str, str]]:
    nothing: dict[str, float | None] = {"hfu": None, "mfu": None}
    if peaks is None:
        return nothing, dict.fromkeys(("hfu", "mfu"), no_peaks)
    table = costs.table[costs.table["flops"].fillna(0) > 0]
    sums = table.groupby("dtype", dropna=False)[["flops", "recomputed"]].sum()
    spent = {"hfu": 0.0, "mfu": 0.0}
    for dtype, flops, again in zip(sums.index, sums["flops"], sums["recomputed"], strict=True):
        peak = peaks.flops(str(dtype))
        if peak is None:
            why = f"the peak of {dtype} is not known ({peaks.source})"
            return nothing, dict.fromkeys(("hfu", "mfu"), why)
        spent["hfu"] += float(flops) / peak
        spent["mfu"] += float(flops - again) / peak
    return {name: s * 1e9 / time_ns for name, s in spent.items()}, {}
