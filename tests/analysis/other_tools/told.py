"""What other tools' own tests say of the traces, and how to find the same in ours."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.device_time import DeviceTime, device_time
from workbench.analysis.intervals import Spans, union
from workbench.analysis.window import recording
from workbench.trace.table import Kind, Trace

Rows = NDArray[np.intp]
HOST = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON)


def expected(tool: str) -> list[dict[str, Any]]:
    root = os.environ.get("WORKBENCH_TRACES")
    if not root:
        return []
    told: list[dict[str, Any]] = json.loads(
        (Path(root) / "expected_by_other_tools.json").read_text()
    )[tool]
    return told


def told_tools() -> set[str]:
    root = Path(os.environ["WORKBENCH_TRACES"])
    return set(json.loads((root / "expected_by_other_tools.json").read_text())) - {"note"}


def file_of(case: dict[str, Any]) -> str:
    return str(case["trace"]).rpartition("__")[2]


def named(trace: Trace, predicate: Callable[[str], bool], *kinds: Kind) -> Rows:
    rows: Rows = trace.events.rows(*kinds)
    return rows[np.isin(trace.events.name[rows], trace.name_codes(predicate))]


def spans(trace: Trace, rows: Rows) -> Spans:
    return union(trace.events.ts[rows], trace.events.end[rows])


def whole(trace: Trace) -> DeviceTime:
    span = recording(trace, None)
    assert span is not None
    return device_time(trace, None, span)
