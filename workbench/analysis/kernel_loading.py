"""Launching calls that had to load their kernel first.

With lazy loading the first launch of a kernel brings its code to the device, which may take seconds
(1.3 s in a real trace) and shows as nothing but a long call.
"""

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.launches import Launches
from workbench.trace.table import Kind, Trace

LOADING_NS = 1_000_000
LOADING_MEDIANS = 20
"""A first launch loads its kernel when it lasts longer than both."""

Times = NDArray[np.int64]


def first_calls(trace: Trace, launches: Launches) -> Times:
    """Per name code: start of the first call that launched a kernel of that name."""
    events = trace.events
    kernels = _launched_kernels(trace, launches)
    first = np.full(len(trace.names), np.iinfo(np.int64).max)
    np.minimum.at(first, events.name[kernels], events.ts[launches.launch[kernels]])
    return first


def longest_plain_call(trace: Trace, launches: Launches) -> float:
    """A first call that lasts longer loaded its kernel."""
    called = np.zeros(len(trace.events), bool)
    called[launches.launch[launches.launch >= 0]] = True
    usual = float(np.median(trace.events.dur[called])) if called.any() else 0.0
    return max(LOADING_NS, LOADING_MEDIANS * usual)


def loading_calls(trace: Trace, launches: Launches) -> NDArray[np.intp]:
    """Rows of the launching calls that loaded a kernel."""
    events = trace.events
    kernels = _launched_kernels(trace, launches)
    call = launches.launch[kernels]
    long = events.dur[call] > longest_plain_call(trace, launches)
    kernels, call = kernels[long], call[long]
    first = events.ts[call] <= first_calls(trace, launches)[events.name[kernels]]
    return np.unique(call[first])


def _launched_kernels(trace: Trace, launches: Launches) -> NDArray[np.intp]:
    kernels = trace.events.rows(Kind.KERNEL)
    return kernels[launches.launch[kernels] >= 0]
