"""Arbitrary and mutated input: a Trace or a TraceError, never anything else, and never forever."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kineto import Kineto
from tests.trace import layouts
from workbench import trace
from workbench.errors import TraceError

pytestmark = pytest.mark.slow


BOUNDED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["X", "B", "E", "s", "i", "M", "C", "kernel", "[memory]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp"])
ARGUMENTS = st.sampled_from(
    [
        *("External id", "correlation", "device", "stream", "bytes", "grid", "Input Dims"),
        *("Python parent id", "Collective name", "Call stack", "Bytes", "Addr", "name", "labels"),
    ]
)
EVENTS = st.dictionaries(KEYS, VALUES | st.dictionaries(ARGUMENTS, VALUES), max_size=10)


def seeds() -> list[bytes]:
    made = Kineto(gpu=True)
    made.step(1, 0, 100)
    made.op("aten::mm", 5, 10, **{"Input Dims": [[2, 3], [3, 4]], "External id": 1})
    made.launched("gemm", call=(6, 1), kernel=(20, 5), correlation=1)
    made.events += [
        {"ph": "B", "name": "b", "ts": 1, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 2, "pid": 1, "tid": 1},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    ]
    return [layout(made.document()) for layout in layouts.ALL]


def survives(data: bytes) -> None:
    try:
        found = trace.read(data, size_limit=1 << 24)
    except TraceError:
        return
    assert (found.events.dur >= 0).all()
    assert not len(found.events) or found.events.ts[0] == 0
    assert all(name.encode() is not None for name in found.names)
    json.dumps([violation.message for violation in found.violations])


@given(st.binary(max_size=300))
@BOUNDED
def test_arbitrary_bytes(data: bytes) -> None:
    survives(data)


@given(
    st.sampled_from(["{", "[", '{"traceEvents": [']), st.text('{}[],:"\\ \n0Xphts', max_size=200)
)
@BOUNDED
def test_arbitrary_json_like_text(start: str, text: str) -> None:
    survives((start + text).encode())


@given(st.lists(EVENTS, max_size=8), st.dictionaries(st.text(max_size=20), VALUES, max_size=3))
@settings(BOUNDED, max_examples=60)
def test_any_values_in_events(events: list[Any], header: dict[str, Any]) -> None:
    survives(json.dumps({**header, "traceEvents": events}).encode("utf-8", "surrogatepass"))


@given(
    st.sampled_from(seeds()),
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 12), st.binary(max_size=6)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
@settings(BOUNDED, max_examples=200)
def test_mutated_traces(
    seed: bytes, edits: list[tuple[float, int, bytes]], compressed: bool
) -> None:
    data = gzip.compress(seed, mtime=0) if compressed else seed
    for where, removed, inserted in edits:
        position = int(where * len(data))
        data = data[:position] + inserted + data[position + removed :]
    survives(data)
