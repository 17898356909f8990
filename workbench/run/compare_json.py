"""The document of ``workbench compare --json``: schema ``workbench.compare/1``."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from workbench.run.beside import beside_json

if TYPE_CHECKING:
    import pandas as pd

    from workbench.run.compare import Comparison
    from workbench.run.profiled import ProfiledSteps
    from workbench.run.where import Where


def comparison_document(found: Comparison) -> dict[str, Any]:
    """Everything but the name of the schema; ``null`` means not measured, 0 measured and zero."""
    change = found.change
    return {
        "first": found.first,
        "second": found.second,
        "verdict": change.verdict,
        "reason": change.reason,
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "noise_floor": change.noise_floor,
        "smallest_effect": change.smallest_effect,
        "per": found.per,
        "median_us": {"first": _median_us(found.first_ns), "second": _median_us(found.second_ns)},
        "steps": {"first": len(found.first_ns), "second": len(found.second_ns)},
        "differences": [
            {"where": d.where, "name": d.name, "first": d.first, "second": d.second}
            for d in found.differences
        ],
        **beside_json(*found.runs),
        "profiled": _profiled(found.profiled),
        "notes": list(found.notes),
        "where": [
            {"rank": pair[0].rank, **_where(each)}
            for pair, each in zip(found.rank_pairs, found.where, strict=True)
        ],
    }


def _profiled(found: ProfiledSteps | None) -> dict[str, Any] | None:
    """Step times under the profiler: explained by the trace, never real ones."""
    if found is None:
        return None
    sides = {"first": found.first_ns, "second": found.second_ns}
    return {
        "mean_us": {name: statistics.fmean(side) / 1000 for name, side in sides.items()},
        "steps": {name: len(side) for name, side in sides.items()},
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "beyond_spread": found.beyond,
    }


def _where(found: Where) -> dict[str, Any]:
    return {
        "per": found.per,
        "steps": {"first": found.steps[0], "second": found.steps[1]},
        "breakdown": _rows(found.breakdown),
        "families": _rows(found.families),
        "kernels": _rows(found.kernels),
        "operators": _rows(found.operators),
    }


def _rows(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """The table's rows, times in microseconds as everywhere in JSON."""
    if table is None:
        return None
    return [
        dict(_cell(str(name), value) for name, value in row.items())
        for row in table.to_dict("records")
    ]


def _cell(name: str, value: Any) -> tuple[str, Any]:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return name.replace("_ns", "_us"), None
    if name.endswith("_ns"):
        return f"{name.removesuffix('_ns')}_us", float(value) / 1000
    return name, float(value) if name.startswith("calls") else str(value)


def _median_us(values: tuple[float, ...]) -> float | None:
    return float(statistics.median(values)) / 1000 if values else None
