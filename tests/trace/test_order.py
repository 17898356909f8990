"""The order in which a file lists its events says nothing; only their times and numbers do."""

import json
import random

import pytest

from tests.kineto import Kineto
from workbench.trace import read
from workbench.trace.table import Trace


def tied() -> Kineto:
    """In whole microseconds nested records often begin and end together.

    ``aten::t`` calls ``aten::transpose``, which calls ``aten::as_strided``; the frame of Python
    around them and the call inside them take just as long.
    """
    trace = Kineto(gpu=True)
    trace.python("train.py(3): step", 10, 5, ident=1, parent=None)
    trace.python("torch/_tensor.py(7): t", 10, 5, ident=2, parent=1)
    for number, name in enumerate(("aten::t", "aten::transpose", "aten::as_strided")):
        trace.op(name, 10, 5, **{"External id": 100 + number})
    trace.runtime("cudaLaunchKernel", 10, 5, correlation=1)
    trace.kernel("gemm", 20, 5, correlation=1)
    return trace


def names(trace: Trace) -> list[str]:
    return [trace.names[code] for code in trace.events.name]


def opened(trace: Kineto) -> Trace:
    return read(json.dumps(trace.document()).encode())


@pytest.mark.parametrize("seed", range(5))
def test_of_records_of_one_time_the_outer_comes_first(seed: int) -> None:
    trace = tied()
    random.Random(seed).shuffle(trace.events)
    assert names(opened(trace)) == [
        *("train.py(3): step", "torch/_tensor.py(7): t"),
        *("aten::t", "aten::transpose", "aten::as_strided"),
        *("cudaLaunchKernel", "gemm"),
    ]


def test_without_numbers_the_file_is_believed() -> None:
    """Writers list what encloses first."""
    trace = Kineto()
    for name in ("b", "a", "c"):
        trace.op(name, 10, 5)
    assert names(opened(trace)) == ["b", "a", "c"]
