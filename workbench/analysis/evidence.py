"""What the host side of a trace tells about idle time, prepared once for every device and range."""

from dataclasses import dataclass

import numpy as np

from workbench.analysis import causes
from workbench.analysis.host_records import CALLS, HostRecords, host_records
from workbench.analysis.kernel_loading import first_calls, longest_plain_call
from workbench.analysis.launches import Launches
from workbench.analysis.nesting import Times, distinct
from workbench.analysis.steps import Steps
from workbench.analysis.threads import Threads
from workbench.trace.table import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """A trace with its host records nested and its threads ready to be asked."""

    trace: Trace
    launches: Launches
    records: HostRecords
    threads: Threads
    launching: Times
    """Rows of all calls that hand work to a device, whether its record arrived or not."""
    first_call: Times
    """Per name code: start of the first call that launched a kernel of that name."""
    loading_ns: float
    """A first call that lasts longer loaded its kernel."""


def gather_evidence(trace: Trace, launches: Launches, steps: Steps | None) -> Evidence:
    """Nest and classify the host records of a trace; takes seconds on millions of events."""
    records = host_records(trace, launches, steps)
    return Evidence(
        trace=trace,
        launches=launches,
        records=records,
        threads=Threads(trace, records, launches, steps),
        launching=_launching_calls(trace, launches),
        first_call=first_calls(trace, launches),
        loading_ns=longest_plain_call(trace, launches),
    )


def _launching_calls(trace: Trace, launches: Launches) -> Times:
    events = trace.events
    calls = events.rows(*CALLS)
    named = np.isin(events.name[calls], causes.codes_matching(trace, causes.LAUNCH_PATTERN))
    known = launches.launch[launches.launch >= 0]
    return distinct(np.concatenate((calls[named], known)))
