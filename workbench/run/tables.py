"""The tables of a Run: the answers of one rank as DataFrames, times in nanoseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.run.rank import RankAnalysis

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.outliers import Outlier


def steps(rank: RankAnalysis) -> pd.DataFrame | None:
    """One row a complete step."""
    import numpy as np
    import pandas as pd

    from workbench.analysis.outliers import outlier_steps

    found = rank.steps
    if found is None:
        return None
    count = len(found.numbers)
    times = np.full(count, np.nan)
    if len(found.time_ns):
        times[count - len(found.time_ns) :] = found.time_ns
    outlier = np.zeros(count, bool)
    outlier[found.first_steady :] = outlier_steps(found.time_ns[found.warmup :])
    return pd.DataFrame(
        {
            "step": found.numbers,
            "start_ns": found.start,
            "host_ns": found.host_ns,
            "time_ns": times,
            "warmup": ~found.steady if found.warmup else np.zeros(count, dtype=bool),
            "outlier": outlier,
        }
    )


def step_parts(rank: RankAnalysis) -> pd.DataFrame | None:
    """One row a complete step and device, a column a part."""
    import pandas as pd

    found = rank.details.steps
    if not found:
        return None
    frames = [
        pd.DataFrame(
            {
                "device": pd.Series([device] * len(each), dtype="Int64"),
                "step": each.numbers,
                "start_ns": each.start,
                "time_ns": each.length,
                "steady": each.steady,
                **{
                    name: pd.Series([None] * len(each) if ns is None else ns, dtype="Int64")
                    for name, ns in each.parts.items()
                },
            }
        )
        for device, each in found.items()
    ]
    return pd.concat(frames, ignore_index=True)


def outliers(rank: RankAnalysis) -> pd.DataFrame | None:
    """One row a step that takes far longer than the others; ``None`` for too few steps."""
    import pandas as pd

    from workbench.analysis.outliers import LEAST_STEPS

    found = rank.details.steps
    if not any(each.steady.sum() >= LEAST_STEPS for each in found.values()):
        return None
    rows = [
        _outlier(device, each) for device, some in rank.details.outliers.items() for each in some
    ]
    names = list(_outlier(None, None))
    table = pd.DataFrame(rows, columns=names)
    return table.astype({"device": "Int64", "gap_ns": "Int64", "garbage_ns": "Int64"})


def _outlier(device: int | None, found: Outlier | None) -> dict[str, object]:
    """One row; without an outlier only its columns."""
    gap = None if found is None else found.gap
    return {
        "device": device,
        "step": found and found.step,
        "time_ns": found and found.time_ns,
        "excess_ns": found and found.excess_ns,
        "grew": found and found.grew,
        "gap_ns": None if gap is None else gap.end - gap.start,
        "gap_cause": None if gap is None else gap.cause,
        "gap_host": None if gap is None else gap.host,
        "garbage_ns": found and found.garbage_ns,
        "new_kernels": found and found.new_kernels,
        "new_shapes": found and found.new_shapes,
        "only_here": found and found.only_here,
    }


def idle(rank: RankAnalysis) -> pd.DataFrame | None:
    """Idle time of every device by cause."""
    import pandas as pd

    if not rank.idle_causes:
        return None
    rows = [
        {"device": device, "cause": cause, "idle_ns": ns, "window_ns": span.length}
        for device, causes in rank.idle_causes.items()
        if (span := rank.windows[device]) is not None
        for cause, ns in causes.items()
    ]
    table = pd.DataFrame(rows)
    table["idle_ns"] = table["idle_ns"].astype("Int64")
    table["share"] = table["idle_ns"] / table["window_ns"].where(table["window_ns"] > 0)
    return table


def input_waits(rank: RankAnalysis) -> pd.DataFrame | None:
    """Every wait for a batch."""
    import pandas as pd

    wait = rank.input_wait
    if wait is None:
        return None
    found = wait.waits
    return pd.DataFrame(
        {"start_ns": found.start, "wait_ns": found.end - found.start, "step": found.step}
    )


def memory(rank: RankAnalysis) -> pd.DataFrame | None:
    """Peak memory and device allocations a step."""
    import pandas as pd

    found = rank.memory
    if found is None:
        return None
    return pd.DataFrame(
        [
            {
                "peak_bytes": found.peak_bytes,
                "device_allocations_per_step": found.device_allocations_per_step,
            }
        ]
    )
