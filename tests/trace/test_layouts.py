"""Whatever the layout, the same trace is read; the reference is json.loads with exact decimals."""

import gzip
import io
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trace import layouts
from tests.trace.reference import expected_rows, rows
from workbench import trace
from workbench.trace import frames
from workbench.trace.gather import Gatherer
from workbench.trace.locate import locate
from workbench.trace.notes import Notes
from workbench.trace.parse import Parser
from workbench.trace.source import open_source

pytestmark = pytest.mark.slow


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ['say "hi"', "C:\\dir\\", "a}, {b", '}, {"ph": "X"', "\n  },\n  {", "[memory]", "日本語", "]"]
)
STAMPS = st.integers(1, 10**12) | st.integers(1, 10**15).map(lambda ns: ns / 1000)
ARGS = st.fixed_dictionaries(
    {},
    optional={
        "correlation": st.integers(0, 2**31),
        "External id": st.integers(0, 2**40),
        "nested": st.just([{"ph": "X"}, {"name": "inner"}]),
        "text": NAMES,
    },
)
DURATIONS = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.sampled_from(["unknown", "kernel", "my category"]),
        "name": NAMES,
        "pid": st.integers(0, 3) | st.sampled_from(["Spans", "CPU"]),
        "tid": st.integers(0, 2**31) | st.just("stream 7"),
        "ts": STAMPS,
        "dur": STAMPS.map(lambda us: us % 1000),
    },
    optional={"args": ARGS},
)
OTHERS = st.sampled_from(
    [
        {"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "tid": 0, "args": {"name": "p"}},
        {"ph": "s", "id": 7, "pid": 1, "tid": 1, "ts": 5, "cat": "ac2g", "name": "ac2g"},
        {"ph": "i", "s": "g", "name": "mark", "pid": "", "tid": "", "ts": 6.5},
        {"ph": "P", "name": "sample", "ts": 1},
    ]
)


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """Traces whose stamps are far enough apart in value, but within the same hour."""
    return st.lists(DURATIONS | OTHERS, min_size=1, max_size=30).map(
        lambda events: {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}, {"id": 1, "name": ""}],
            "traceEvents": [_within_the_hour(event) for event in events],
        }
    )


def _within_the_hour(event: dict[str, Any]) -> dict[str, Any]:
    changed = dict(event)
    ns = int(Decimal(str(event.get("ts", 1))) * 1000) % (3000 * 10**9)
    changed["ts"] = 4_450_000_000_000 + ns // 1000 + (ns % 1000) / 1000
    return changed


@given(document=documents())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_layout_reads_like_the_reference(document: dict[str, Any]) -> None:
    for layout in layouts.ALL:
        text = layout(document)
        read = trace.read(text)
        assert rows(read) == expected_rows(text), layout
        assert [v for v in read.violations if v.code != "no_events"] == []


@pytest.mark.parametrize("size", [200, 1300])
@given(document=documents())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_where_the_buffer_ends_does_not_matter(size: int, document: dict[str, Any]) -> None:
    phases = Counter(event["ph"] for event in document["traceEvents"])
    for layout in layouts.ALL:
        source, _ = open_source(layout(document), 1 << 30)
        gathered, notes, small = Gatherer(), Notes("t"), frames.Frames(source, size)
        place = locate(small)
        assert Parser(small, gathered, notes, place.form).run(), layout
        assert gathered.phases == phases, layout
        assert notes.violations(len(phases)) == ()


@given(document=documents())
@settings(max_examples=20, deadline=None)
def test_compression_and_a_byte_order_mark_change_nothing(document: dict[str, Any]) -> None:
    text = layouts.kineto(document)
    plain = rows(trace.read(text))
    half = len(text) // 2
    members = gzip.compress(text[:half]) + gzip.compress(text[half:]) + b"\0\0"
    for other in (gzip.compress(text), members, b"\xef\xbb\xbf" + text, b"\n \n" + text):
        assert rows(trace.read(other)) == plain
        assert rows(trace.read(io.BytesIO(other))) == plain


def test_a_trace_larger_than_the_buffer_is_read_whole() -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1}
    events = [event | {"ts": i, "dur": 1, "args": {"External id": i}} for i in range(20_000)]
    for layout in layouts.ALL:
        read = trace.read(layout({"traceEvents": events}))
        assert len(read.events) == 20_000
        assert read.events.external_id.tolist() == list(range(20_000))
        assert read.violations == ()


def test_one_event_may_be_larger_than_the_buffer() -> None:
    long = {"ph": "X", "name": "long", "ts": 1, "dur": 1, "args": {"text": "x" * (3 << 20)}}
    short = {"ph": "X", "name": "short", "ts": 2, "dur": 1}
    read = trace.read(layouts.one_line({"traceEvents": [short, long, short]}))
    assert len(read.events) == 3
    assert read.violations == ()
