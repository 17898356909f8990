"""How long the kernels of collectives take when no rank is late, by what all ranks recorded."""

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.collectives import Collectives
from workbench.trace.table import DEVICE_WORK, Trace


def transfer_of(
    trace: Trace, collectives: Collectives | None, transfer: NDArray[np.int64] | None
) -> dict[int, int] | None:
    """Row of each collective's kernel and the length of its transfer in ns.

    A collective of several kernels is left out: nobody knows in which of them it waits.

    Args:
        trace: The event table.
        collectives: The collectives of the trace.
        transfer: Transfer of each, which only all ranks together tell; ``None`` for one rank.
    """
    if collectives is None or transfer is None:
        return None
    events = trace.events
    rows = events.rows(*DEVICE_WORK)
    whole = dict(
        zip(
            zip(
                collectives.device.tolist(),
                collectives.start.tolist(),
                collectives.end.tolist(),
                strict=True,
            ),
            transfer.tolist(),
            strict=True,
        )
    )
    begun = np.isin(events.ts[rows], collectives.start)
    return {
        row: whole[key]
        for row in rows[begun].tolist()
        if (key := (int(events.device[row]), int(events.ts[row]), int(events.end[row]))) in whole
    }
