"""Short ways from a hand-written trace to the columns that an analysis takes."""

import json

from tests.kineto import Kineto
from workbench.trace import read
from workbench.trace.table import Trace

US = 1_000
MS = 1_000_000


def columns(made: Kineto) -> Trace:
    """The event table of a trace written by hand."""
    return read(json.dumps(made.document()).encode())
