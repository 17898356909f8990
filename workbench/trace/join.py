"""Begin and end events of a thread become durations."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from workbench.trace.columns import Column
from workbench.trace.notes import Notes
from workbench.trace.stamps import INVALID
from workbench.trace.table import Violation


def join_marks(
    marks: Mapping[str, Column], dur: NDArray[np.int64], notes: Notes
) -> NDArray[np.int64]:
    """Give every begun row its duration; returns the rows that never ended.

    An end belongs to the innermost begin of its lane, in the order of time and, at the same
    moment, of the file.
    """
    ts, lane, row = (marks[name].take() for name in ("ts", "lane", "row"))
    if not len(ts):
        return np.empty(0, np.int64)
    open_rows: dict[int, list[tuple[int, int]]] = {}
    stray = 0
    for index in np.argsort(ts, kind="stable").tolist():
        stack = open_rows.setdefault(int(lane[index]), [])
        moment = int(ts[index])
        if row[index] >= 0:
            stack.append((int(row[index]), moment))
        elif moment == INVALID or not stack:
            stray += 1
        else:
            begun, start = stack.pop()
            dur[begun] = INVALID if start == INVALID else moment - start
    unmatched = [begun for stack in open_rows.values() for begun, _ in stack]
    if stray or unmatched:
        notes.add(
            Violation(
                code="unmatched_begin_end",
                message=f"Begin events without an end ({len(unmatched):,}) and end events "
                f"without a begin ({stray:,}) were left out.",
                count=stray + len(unmatched),
            )
        )
    return np.array(sorted(unmatched), np.int64)
