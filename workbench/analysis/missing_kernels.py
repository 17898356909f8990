"""Launch calls whose kernel was never recorded, outside the capture of a graph.

Only kernel and graph launches are looked at: a copy or set of no bytes leaves no record either.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.intervals import Spans, contains, union
from workbench.analysis.launches import Launches
from workbench.trace.table import Kind, Trace

_LAUNCH = re.compile(
    r"launch.*kernel|kernel_?launch|invoke_?kernel|graph_?launch|job_prep_and_submit", re.IGNORECASE
)
_CAPTURE_BEGIN = re.compile(r"StreamBeginCapture")
_CAPTURE_END = re.compile(r"StreamEndCapture")


@lru_cache(maxsize=4096)
def is_launch(name: str) -> bool:
    """Whether a runtime or driver call of this name puts a kernel or a graph on a device."""
    return _LAUNCH.search(name) is not None


def launch_calls(trace: Trace) -> NDArray[np.intp]:
    """Rows of the runtime and driver calls that put kernels or graphs on a device."""
    return _calls_named(trace, is_launch)


def capture_spans(trace: Trace) -> Spans:
    """When a stream was being captured into a graph, its begin and end calls included.

    A capture that began before the recording, or did not end in it, reaches to its border.
    """
    events = trace.events
    begins = _calls_named(trace, lambda name: bool(_CAPTURE_BEGIN.search(name)))
    ends = _calls_named(trace, lambda name: bool(_CAPTURE_END.search(name)))
    if not len(begins) and not len(ends):
        return union(events.ts[begins], events.ts[begins])
    at = np.concatenate((events.ts[begins], events.end[ends]))
    rise = np.repeat([1, -1], [len(begins), len(ends)])
    order = np.lexsort((-rise, at))
    at, depth = at[order], np.cumsum(rise[order])
    depth += max(0, -int(depth.min()))
    open_from = np.concatenate(([np.int64(events.ts[0])], at))
    open_to = np.concatenate((at, [np.int64(events.end.max())]))
    before_first = depth[0] - rise[order][0]
    inside = np.concatenate(([before_first], depth)) > 0
    return union(open_from[inside], open_to[inside])


def launches_without_kernel(trace: Trace, launches: Launches) -> NDArray[np.intp]:
    """Rows of launch calls outside capture that no device work points to.

    One launch may be written as two nested calls, a runtime's and a driver's; the pair counts as
    recorded when either has its kernel.
    """
    events = trace.events
    calls = launch_calls(trace)
    used = np.zeros(len(events), bool)
    used[launches.launch[launches.launch >= 0]] = True
    lost = calls[~used[calls]]
    if not len(lost):
        return lost
    lost = lost[~contains(capture_spans(trace), events.ts[lost])]
    answered = calls[used[calls]]
    nested = np.zeros(len(lost), bool)
    for lane in np.unique(events.lane[lost]):
        mine = events.lane[lost] == lane
        theirs = answered[events.lane[answered] == lane]
        spans = union(events.ts[theirs], events.end[theirs])
        first = np.searchsorted(spans.end, events.ts[lost[mine]], "right")
        nested[mine] = np.searchsorted(spans.start, events.end[lost[mine]], "left") > first
    return lost[~nested]


def _calls_named(trace: Trace, predicate: Callable[[str], bool]) -> NDArray[np.intp]:
    codes = trace.name_codes(predicate)
    calls = trace.events.rows(Kind.RUNTIME, Kind.DRIVER)
    return calls[np.isin(trace.events.name[calls], codes)]
