"""What the loop's exposed wait for input was spent on, for one rank of a Run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.stalls.parts import PARTS, Stalls, Unseen
from workbench.run.loader import TO_DEVICE, about

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from workbench.analysis.intervals import Spans
    from workbench.analysis.step_breakdown import StepBreakdown
    from workbench.run.rank import RankAnalysis
    from workbench.store.loader import LoaderRecords

Recorded = tuple["LoaderRecords | None", "pd.DataFrame | None"]
"""Records of the loader, and samples of the system."""

_COPYING = re.compile(r"^[a-zA-Z]+Memcpy")

NO_INPUT = "the trace holds no record of a data loader"
NO_WINDOW = "the trace holds nothing that waiting could be exposed in"


def find_stalls(rank: RankAnalysis, recorded: Callable[[], Recorded] | None) -> Stalls | Unseen:
    """Divide the exposed wait of the first device, or of the loop's thread without one.

    Args:
        rank: Whose.
        recorded: Gives what was recorded of its loader; ``None`` where nothing can have been.
    """
    from workbench.analysis.intervals import union
    from workbench.analysis.stalls.crowding import crowded_spans
    from workbench.analysis.stalls.split import NOT_RECORDED, split_stalls

    wait = rank.input_wait
    if wait is None:
        return Unseen(NO_INPUT)
    exposed = _exposed(rank)
    if exposed is None:
        return Unseen(NO_WINDOW)
    records, system = (None, None) if recorded is None else recorded()
    if records is None:
        return Unseen(NOT_RECORDED)
    return split_stalls(
        records,
        exposed,
        union(wait.waits.start, wait.waits.end),
        steps=_borders(rank),
        copying=_copying(rank),
        crowded=None if system is None else crowded_spans(system, about(system)),
    )


def stalls_table(rank: RankAnalysis) -> pd.DataFrame | None:
    """One row a complete step; one without a number for what lies in none; ``None``: no split."""
    import pandas as pd

    found = rank.stalls
    if found is None:
        return None
    steps = stall_steps(rank)
    numbers = () if steps is None else steps.numbers
    amounts = found.steps(len(numbers))
    kept = len(numbers) + int(amounts[-1].any() or not len(numbers))
    table = pd.DataFrame(
        {
            "device": pd.Series([_device(rank)] * kept, dtype="Int64"),
            "step": pd.Series([*numbers, None][:kept], dtype="Int64"),
            "exposed_ns": amounts[:kept].sum(axis=1),
        }
    )
    for place, name in enumerate(PARTS):
        seen = found.by_part[name] is not None
        table[name] = pd.Series(amounts[:kept, place] if seen else [None] * kept, dtype="Int64")
    return table


def stall_steps(rank: RankAnalysis) -> StepBreakdown | None:
    """The steps that the wait is divided by; ``None`` where there are none."""
    return rank.details.steps.get(_device(rank))


def stalls_json(rank: RankAnalysis) -> dict[str, Any]:
    """Fields beside the wait for input, in microseconds."""
    found = rank.stalls
    if found is None:
        return {
            "stalls_us": None,
            "stalls_other_us": None,
            "workers": None,
            "workers_fetching": None,
        }
    return {
        "stalls_us": {
            name: None if ns is None else ns / 1000 for name, ns in found.by_part.items()
        },
        "stalls_other_us": {name: ns / 1000 for name, ns in found.other_by.items()},
        "workers": found.workers,
        "workers_fetching": found.fetching,
    }


def _device(rank: RankAnalysis) -> int | None:
    return rank.device_indices[0] if rank.device_indices else None


def _exposed(rank: RankAnalysis) -> Spans | None:
    """What the breakdown gives to input, on the host's clock."""
    from workbench.analysis.causes import CAUSE_CODE
    from workbench.analysis.host import claimed_spans
    from workbench.analysis.intervals import union

    device = _device(rank)
    if device is None:
        if rank.window is None or rank.host_breakdown is None:
            return None
        return claimed_spans(rank.trace, rank.window, rank.steps)["input"]
    idle = rank.idle.get(device)
    if idle is None or idle.by_cause["input"] is None:
        return None
    mine = idle.pieces.cause == CAUSE_CODE["input"]
    offset = rank.launches.clock_offset.get(device, 0)
    return union(idle.pieces.start[mine] + offset, idle.pieces.end[mine] + offset)


def _borders(rank: RankAnalysis) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Start and end of every complete step, on the host's clock."""
    device = _device(rank)
    steps = stall_steps(rank)
    if steps is None:
        return np.empty((0, 2), np.int64)
    offset = 0 if device is None else rank.launches.clock_offset.get(device, 0)
    return np.stack([steps.start, steps.end], axis=1) + offset


def _copying(rank: RankAnalysis) -> Spans | None:
    """When a thread copied to a device; ``None`` where the calls were not recorded."""
    from workbench.analysis.intervals import EMPTY, union
    from workbench.trace.table import Kind

    events = rank.trace.events
    calls = events.rows(Kind.RUNTIME, Kind.DRIVER)
    if not len(calls):
        return None if rank.device_indices else EMPTY
    codes = rank.trace.name_codes(lambda name: bool(_COPYING.match(name)))
    calls = calls[np.isin(events.name[calls], codes)]
    ours = np.isin(events.name, rank.trace.name_codes(lambda name: name == TO_DEVICE))
    rows = np.union1d(calls, np.flatnonzero(ours))
    return union(events.ts[rows], events.end[rows])
