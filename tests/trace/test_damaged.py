"""Broken JSON: mended where only one reading makes sense, and always told."""

import gzip
import json
from typing import Any

import pytest

from tests.trace import layouts
from tests.trace.reference import codes, names
from workbench import trace
from workbench.errors import TraceError

HEAD = b'{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [\n'
TAIL = b'\n], "traceName": "t.json"}'


def event(name: str, ts: float = 1, **rest: Any) -> bytes:
    made = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 1}
    return json.dumps(made | rest).encode()


def raw(name: bytes, ts: int = 2) -> bytes:
    """One event whose name is written as it is, legal or not."""
    return (
        b'{\n    "ph": "X",\n    "cat": "user_annotation",\n    "name": "%s",\n    "pid": 1,\n'
        b'    "tid": 1,\n    "ts": %d,\n    "dur": 1\n  }' % (name, ts)
    )


def document(*events: bytes, separator: bytes = b",\n") -> bytes:
    return HEAD + separator.join(events) + TAIL


MANY = [event(f"op{i}", 10 + i) for i in range(300)]
"""Enough sound events that a damaged one is the exception."""


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b'a"b', 'a"b'),
        (b'f("x", "y")', 'f("x", "y")'),
        (b"C:\\data\\new", "C:\\data\new"),
        (b"C:\\Users\\me\\", "C:\\Users\\me\\"),
        (b"tab\there", "tab\there"),
        (b"two\nlines", "two\nlines"),
        (b"bell\x07", "bell\x07"),
        (b"\xff\xfe bytes", "\ufffd\ufffd bytes"),
        (b"half \\ud800 pair", "half \ufffd pair"),
        (b"\\e[31mred", "\\e[31mred"),
    ],
)
def test_a_damaged_name_keeps_its_event_and_all_others(written: bytes, meant: str) -> None:
    # \\d and \\U are no JSON escapes and stay as written; \\n is one, and stays a new line.
    read = trace.read(document(*MANY[:150], raw(written, 170), *MANY[150:]))
    assert len(read.events) == 301
    assert meant in names(read)
    assert codes(read) == {"repaired_json": 1}
    assert read.base_ns is not None


def test_quotes_are_mended_in_a_layout_without_lines_too() -> None:
    damaged = event("PLAIN", 5).replace(b"PLAIN", b'say "hi", twice')
    read = trace.read(document(*MANY, damaged))
    assert 'say "hi", twice' in names(read)


def test_a_surrogate_pair_is_one_character() -> None:
    read = trace.read(document(raw(b"\\ud83d\\ude00")))
    assert names(read) == ["\N{GRINNING FACE}"]
    assert read.violations == ()


def test_not_a_number_in_args_is_not_recorded() -> None:
    kernel = event("k", 5, cat="kernel", args={"grid": [1, 1, 1], "blocks per SM": 0.5})
    text = document(*MANY, kernel.replace(b"0.5", b"NaN"), kernel.replace(b"0.5", b"-Infinity"))
    read = trace.read(text)
    assert len(read.events) == 302
    assert codes(read) == {"repaired_json": 2}
    assert [str(v) for v in read.launch_configurations.blocks_per_sm] == ["nan", "nan"]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + b",\n".join(MANY) + b",\n" + TAIL,
        HEAD + b",\n".join(MANY) + b"\n], }",
        document(*MANY, event("x").replace(b"}", b",}")),
    ],
    ids=["after the last event", "in the header", "in an event"],
)
def test_trailing_commas(text: bytes) -> None:
    read = trace.read(text)
    assert len(read.events) >= 300
    assert codes(read) == {"repaired_json": 1}
    assert read.base_ns is not None


def test_an_array_may_stay_open_as_the_format_allows() -> None:
    read = trace.read(b"[\n" + b",\n".join(MANY))
    assert len(read.events) == 300
    assert codes(read) == {"repaired_json": 1}


def test_events_one_a_line_without_commas() -> None:
    read = trace.read(b"[\n" + b"\n".join(MANY) + b"\n")
    assert len(read.events) == 300
    assert "repaired_json" in codes(read)


def test_json_lines() -> None:
    read = trace.read(b"\n".join(MANY) + b"\n")
    assert len(read.events) == 300
    assert codes(read) == {"repaired_json": 1}


def test_of_two_documents_the_first_is_read() -> None:
    text = document(*MANY[:3])
    read = trace.read(text + b"\n" + document(*MANY[3:]))
    assert names(read) == ["op0", "op1", "op2"]
    assert codes(read) == {"repaired_json": 1}
    assert f"byte {len(text) + 1:,}" in read.violations[0].message


def test_a_record_beyond_repair_is_left_out_and_told_with_its_place() -> None:
    text = document(*MANY[:100], b'{"ph": "X", "name": "bad", "ts": 12..5, "dur": }', *MANY[100:])
    read = trace.read(text)
    assert len(read.events) == 300
    assert codes(read) == {"unreadable_records": 1}
    place = text.index(b'{"ph": "X", "name": "bad"')
    assert f"the first at byte {place:,}" in read.violations[0].message


def test_too_many_records_beyond_repair_are_one_error_with_the_place_of_the_first() -> None:
    bad = [b'{"ph": "X", "name": "bad", "ts": 12..5, "dur": }'] * 50
    with pytest.raises(TraceError, match=r"50 records cannot be read, the first at byte [\d,]+"):
        trace.read(document(*MANY[:100], *bad, *MANY[100:]))


def test_zero_bytes_in_the_middle_cost_the_records_they_hit() -> None:
    text = document(*MANY)
    at = text.index(b"op150")
    read = trace.read(text[: at - 10] + b"\0" * 4096 + text[at + 10 :])
    assert 298 <= len(read.events) <= 299
    assert set(codes(read)) <= {"unreadable_records", "repaired_json"}


@pytest.mark.parametrize("layout", [layouts.kineto, layouts.compact, layouts.four_spaces])
def test_wherever_a_file_is_cut_everything_before_is_read(layout: Any) -> None:
    text = layout({"schemaVersion": 1, "traceEvents": [json.loads(e) for e in MANY[:20]]})
    begin, end = text.index(b"traceEvents") + 16, text.rindex(b"]")
    ends = [text.index(b'"op%d"' % i) for i in range(20)] + [end]
    for cut in range(begin, end, 7):
        read = trace.read(text[:cut])
        started = sum(position < cut for position in ends)
        assert started - 1 <= len(read.events) <= started
        assert "truncated" in codes(read)


def test_a_cut_in_the_header_after_the_events_is_told() -> None:
    read = trace.read(document(*MANY)[:-12])
    assert len(read.events) == 300
    assert "truncated" in codes(read) or "repaired_json" in codes(read)


def test_a_cut_gzip_gives_everything_before_the_cut() -> None:
    whole = gzip.compress(document(*MANY), compresslevel=0)
    read = trace.read(whole[: len(whole) // 2])
    assert 140 <= len(read.events) <= 150
    assert set(codes(read)) == {"truncated"}


def test_an_event_nested_too_deeply_is_left_out() -> None:
    deep = event("deep", 5, args={"x": 0}).replace(b"0}", b"[" * 50_000 + b"]" * 50_000 + b"}")
    read = trace.read(document(*MANY, deep))
    assert len(read.events) == 300
    assert codes(read) == {"unreadable_records": 1}


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000], ids=["arrays", "objects"])
def test_a_file_that_is_nothing_but_depth_is_an_error(text: bytes) -> None:
    with pytest.raises(TraceError):
        trace.read(text)


def test_a_decompression_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(HEAD + event("x") + b"," + b" " * 50_000_000)
    with pytest.raises(TraceError, match="size_limit"):
        trace.read(bomb, size_limit=10_000_000)


def test_text_in_args_that_is_no_utf8_costs_nothing_else() -> None:
    odd = event("x", 5, args={"External id": 77, "text": "PLAIN"})
    read = trace.read(document(*MANY, odd.replace(b"PLAIN", b"\xff\xfe")))
    assert 77 in read.events.external_id
