"""When every usable processor was taken, for kernels that do not tell how long threads wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.intervals import EMPTY, Spans, covered_until, union
from workbench.analysis.stalls.batches import MISSING

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.stalls.batches import Batches
    from workbench.analysis.stalls.fetch import Values

TAKEN = 0.95
"""Own choice: processors that were busy for more than this share had no room for another thread."""


def crowded_spans(system: pd.DataFrame, about: Mapping[str, Any]) -> Spans | None:
    """Stretches between two samples in which all usable processors were taken; ``None``: unknown.

    They were taken by our own processes, or, where nothing restricts us, by any on the machine.
    """
    usable, total = about.get("cpus_usable"), about.get("cpus_total")
    if not usable or not len(system):
        return None
    own = _growth(system[system["process"].isin(("training", "worker"))])
    host = _growth(system[system["process"] == "host"])
    full = [(a, b) for a, b, used in own if used >= TAKEN * usable * (b - a)]
    full += [(a, b) for a, b, used in host if used >= TAKEN * (total or usable) * (b - a)]
    if not own and not host:
        return None
    if not full:
        return EMPTY
    start, end = np.array(full, np.int64).T
    return union(start, end)


def crowded_share(batches: Batches, spans: Spans | None) -> Values | None:
    """Of each fetch, the share inside the spans."""
    if spans is None:
        return None
    seen = batches.fetch_end != MISSING
    start, end = np.where(seen, batches.fetch_start, 0), np.where(seen, batches.fetch_end, 0)
    inside = covered_until(spans, end) - covered_until(spans, start)
    share: Values = np.divide(inside, end - start, out=np.zeros(len(batches)), where=end > start)
    return share


def _growth(rows: pd.DataFrame) -> list[tuple[int, int, float]]:
    """CPU time used between consecutive samples: start, end, nanoseconds of all processes."""
    known = rows.dropna(subset=["cpu_ns"])
    if not len(known):
        return []
    names = known["process"].astype(str) + known["pid"].astype(str)
    wide = known.assign(own=names).pivot_table(index="at_ns", columns="own", values="cpu_ns")
    used = wide.astype("float64").diff().clip(lower=0).sum(axis=1)
    at = wide.index.to_numpy()
    return [(int(a), int(b), float(ns)) for a, b, ns in zip(at, at[1:], used[1:], strict=False)]
