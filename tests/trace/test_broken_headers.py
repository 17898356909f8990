"""JSON that is broken before its events, or never gets to them: one error that says where."""

import json

import pytest

from tests.trace import layouts
from tests.trace.reference import codes, names
from workbench import trace
from workbench.errors import TraceError

EVENT = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": 2}
DOCUMENT = {"schemaVersion": 1, "traceEvents": [EVENT, EVENT | {"name": "b", "ts": 9}]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"{", "ends at byte 1, before any"),
        (b"\xef\xbb\xbf {", "ends at byte 5, before any"),
        (b'{"schemaVersion": 1, "x', "ends at byte 23, before any"),
        (b'{"traceEvents"', "ends at byte 14, before any"),
        (b'{"traceEvents": ', 'ends at byte 16, right behind "traceEvents"'),
        (b'{"a": 1,}', "at byte 8 stands '}' "),
        (b'{"a": nope, "b": 2}', "at byte 6 stands 'nope, "),
        (b'{"a": [1, 2}', "at byte 11 stands '}' "),
        (b"{'a': 1}", "at byte 1 stands \"'a': 1}\""),
        (b'{"traceEvents": 5}', "is no list: at byte 16 stands '5}'"),
        (b'{"traceEvents": null}', "is no list: at byte 16 stands 'null}'"),
        (b"[", "ends at byte 1: the list of events is never closed. No event is whole"),
        (b'[{"ph": "X"', "ends at byte 11: the last record is incomplete. No event is whole"),
        (b"/* by hand */ []", "byte 0 starts with '/\\* by hand"),
    ],
)
def test_the_error_says_at_which_byte(text: bytes, told: str) -> None:
    with pytest.raises(TraceError, match=told):
        trace.read(text)


@pytest.mark.parametrize("layout", [layouts.kineto, layouts.compact, layouts.bare_array])
def test_wherever_a_file_is_cut_it_is_read_or_the_place_is_told(layout: layouts.Layout) -> None:
    text = layout(DOCUMENT)
    for cut in range(1, len(text.rstrip()) - 1):
        try:
            found = trace.read(text[:cut])
        except TraceError as error:
            assert f"at byte {cut:,}" in str(error)  # noqa: PT017
        else:
            assert len(found.events) <= 2
            assert codes(found).keys() & {"truncated", "repaired_json"}


def test_keys_may_be_written_with_escapes() -> None:
    text = json.dumps(DOCUMENT)
    for key in ("traceEvents", "ph", "ts", "name"):
        spelled = "".join(f"\\u{ord(letter):04x}" for letter in key)
        text = text.replace(f'"{key}"', f'"{spelled}"')
        assert names(trace.read(text.encode())) == ["a", "b"]


def test_an_object_that_only_holds_an_event_somewhere_is_no_event() -> None:
    # The first "ph" stands in another list, and the first thing like an event in the devices.
    others = {"systemTraceEvents": [EVENT], "ids": [{"id": 0}, {"id": 1}]}
    found = trace.read(json.dumps(others | DOCUMENT).encode())
    assert names(found) == ["a", "b"]
    assert codes(found) == {}


def test_blanks_by_the_megabyte_cost_nothing() -> None:
    # Searching them for the end of an event took time with the square of their number.
    blanks = b" \n\t\r" * 300_000
    text = json.dumps(DOCUMENT).encode()
    assert names(trace.read(blanks + text)) == ["a", "b"]
    assert names(trace.read(text + blanks)) == ["a", "b"]
    assert names(trace.read(text.replace(b"}, {", b"}," + blanks + b"{"))) == ["a", "b"]
    assert names(trace.read(text.replace(b"}, {", b"}" + blanks + b",{"))) == ["a", "b"]
    assert names(trace.read(text.replace(b"[{", b"[" + blanks + b"{"))) == ["a", "b"]
    with pytest.raises(TraceError, match="is empty"):
        trace.read(blanks)
