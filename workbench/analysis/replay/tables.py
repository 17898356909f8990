"""The answers of the replay as tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.replay.answers import WhatIf
from workbench.analysis.replay.path import PATH_KINDS, CriticalPath
from workbench.trace.table import Trace

if TYPE_CHECKING:
    import pandas as pd


def path_table(trace: Trace, path: CriticalPath) -> "pd.DataFrame":
    """One row a piece of the path, in order: when, how long, what it is, of which event.

    ``step`` is the first of the steps; ``start_ns`` counts from the trace's first event on the
    host's clock; ``share`` is that of the steps.
    """
    import pandas as pd

    names = np.array([*trace.names, ""], object)
    threads = np.array(
        [lane.thread or f"{lane.process or lane.pid} {lane.tid}" for lane in trace.lanes] + [""],
        object,
    )
    known = path.row >= 0
    code = np.where(known, trace.events.name[np.maximum(path.row, 0)], -1)
    length = path.end - path.start
    return pd.DataFrame(
        {
            "step": path.numbers[0],
            "start_ns": path.start,
            "length_ns": length,
            "kind": np.array(PATH_KINDS, object)[path.kind],
            "name": names[code],
            "thread": threads[path.lane],
            "share": length / max(path.length, 1),
        }
    )


def what_if_table(outcomes: Sequence[WhatIf]) -> "pd.DataFrame":
    """One row a question: what a step would take at least, and save at most."""
    import pandas as pd

    return pd.DataFrame(
        {
            "scenario": [each.name for each in outcomes],
            "what_if": [each.label for each in outcomes],
            "step_ns_at_least": [each.step_ns for each in outcomes],
            "saving_ns_at_most": [each.saving_ns for each in outcomes],
            "capped": [each.capped for each in outcomes],
        }
    )
