"""Communication by process group and type of the elements: bytes, exposed and hidden time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.communication import time_of_calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.collectives import Collectives
    from workbench.analysis.ranges import Range

GROUP_COLUMNS = (
    *("group", "ranks", "group_size", "dtype", "collectives", "calls", "bytes"),
    *("total_ns", "exposed_ns", "hidden_ns", "wait_ns", "transfer_ns"),
)


def group_table(
    found: Collectives,
    windows: Mapping[int, Range | None],
    transfer: NDArray[np.int64] | None = None,
) -> pd.DataFrame:
    """Collectives in the windows by group and dtype, longest first; columns are ``GROUP_COLUMNS``.

    ``bytes`` are those of the buffers and missing where one of them is not known; ``wait_ns`` is
    missing where the calls cannot be divided. Over all rows ``total_ns`` is the communication of
    the devices and ``exposed_ns`` their exposed communication; hidden is the rest.

    Args:
        found: The collectives of one trace.
        windows: The window of every device; of the host under ``HOST``.
        transfer: Per call its transfer in ns as several ranks tell it, negative where they cannot;
            ``None`` for one rank alone.
    """
    import pandas as pd

    spent = time_of_calls(found, windows, transfer)
    groups: dict[tuple[str, str], list[int]] = {}
    for call in np.flatnonzero(spent.inside).tolist():
        each = found.calls[call]
        groups.setdefault((each.group, each.dtype), []).append(call)
    rows: list[dict[str, Any]] = []
    for (group, dtype), calls in groups.items():
        own = np.array(calls)
        sizes = [found.calls[call].bytes for call in calls]
        total, exposed = int(spent.total[own].sum()), int(spent.exposed[own].sum())
        divided = transfer is not None and bool((transfer[own] >= 0).all())
        wait = int(spent.wait[own].sum()) if divided and spent.wait is not None else None
        first = found.calls[calls[0]]
        rows.append(
            {
                "group": group or None,
                "ranks": first.ranks or None,
                "group_size": first.group_size,
                "dtype": dtype or None,
                "collectives": ", ".join(sorted({found.calls[call].kind for call in calls})),
                "calls": len(calls),
                "bytes": None if None in sizes else sum(size or 0 for size in sizes),
                "total_ns": total,
                "exposed_ns": exposed,
                "hidden_ns": total - exposed,
                "wait_ns": wait,
                "transfer_ns": total - (wait or 0),
            }
        )
    rows.sort(key=lambda row: (-row["total_ns"], row["group"] or "", row["dtype"] or ""))
    table = pd.DataFrame(rows, columns=list(GROUP_COLUMNS))
    for name in ("group", "ranks", "dtype"):
        table[name] = pd.Series([row[name] for row in rows], dtype=object)
    return table.astype(dict.fromkeys(("group_size", "bytes", "wait_ns"), "Int64"))
