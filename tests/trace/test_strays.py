"""Text that is no JSON between events: the events behind it are read, and it is told."""

import json

import pytest

from tests.trace.reference import codes, names
from workbench import trace

HEAD, TAIL = b'{"schemaVersion": 1, "traceEvents": [', b'], "baseTimeNanoseconds": 1000}'
EVENT = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 5}
COUNT = 200
EVENTS = [
    json.dumps(EVENT | {"name": f"op{at}", "ts": 10 * at, "args": {"External id": at}}).encode()
    for at in range(COUNT)
]
NAMES = [f"op{at}" for at in range(COUNT)]


def document(separator: bytes = b", ", events: list[bytes] = EVENTS) -> bytes:
    return HEAD + separator.join(events) + TAIL


@pytest.mark.parametrize(
    "separator",
    [
        *(b", /* c */ ", b", // c\n", b",\n# c\n", b"; ", b",, ", b", \0", b",\x0c"),
        *(",\u2028".encode(), b"\xef\xbb\xbf, "),
    ],
)
def test_whatever_stands_between_events_all_of_them_are_read(separator: bytes) -> None:
    found = trace.read(document(separator))
    assert names(found) == NAMES
    assert set(codes(found)) == {"repaired_json"}
    assert found.base_ns == 1000


@pytest.mark.parametrize("stray", [b"}", b"]", b"]}", b"]]}", b" oops", b"/* } */", b",,"])
def test_what_stands_behind_one_event_costs_no_other(stray: bytes) -> None:
    # A bracket closes nothing when a comma and another event follow.
    events = [*EVENTS[:50], EVENTS[50] + stray, *EVENTS[51:]]
    found = trace.read(document(events=events))
    assert names(found) == NAMES
    assert set(codes(found)) == {"repaired_json"}
    assert found.base_ns == 1000


@pytest.mark.parametrize(
    "broken",
    [
        EVENTS[50].replace(b'"', b"'"),
        EVENTS[50].replace(b'"ph"', b"ph"),
        EVENTS[50].replace(b'"ph":', b'"ph"'),
        b'/* was {"ph": "X" */',
    ],
)
def test_a_record_that_is_no_json_costs_only_itself_and_is_counted(broken: bytes) -> None:
    found = trace.read(document(events=[*EVENTS[:50], broken, *EVENTS[51:]]))
    assert names(found) == [*NAMES[:50], *NAMES[51:]]
    assert codes(found)["unreadable_records"] == 1
    assert found.base_ns == 1000


def test_a_comma_before_the_first_event_is_passed_over() -> None:
    found = trace.read(document().replace(b"[{", b"[, {"))
    assert names(found) == NAMES
    assert codes(found) == {"repaired_json": 1}


def test_a_list_that_the_object_closes_is_told() -> None:
    found = trace.read(document().replace(TAIL, b"}"))
    assert names(found) == NAMES
    assert codes(found) == {"repaired_json": 1}


@pytest.mark.parametrize("head", [HEAD, b"["])
def test_a_second_list_behind_the_events_is_told_and_grave(head: bytes) -> None:
    listed = b", ".join(EVENTS)
    found = trace.read(head + listed + b"] [" + listed + b"]" + (b"}" if head is HEAD else b""))
    assert names(found) == NAMES
    assert codes(found)["second_list"] == 1
