"""Files that other programs wrote, and files that nobody should have: numbers or one clear error.

Every case is read in bounded time; what is expected stands beside it.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kineto import Kineto
from tests.trace.reference import codes, names
from workbench import trace
from workbench.errors import TraceError
from workbench.trace.table import Kind, Trace

SECONDS = 10
"""Far more than any of these takes; a quadratic one takes minutes."""


@pytest.fixture(autouse=True)
def _in_bounded_time() -> Any:
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


def x(name: Any = "a", ts: Any = 10, **changes: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": 5, **changes}


def read(*events: dict[str, Any], **header: Any) -> Trace:
    return trace.read(json.dumps({**header, "traceEvents": list(events)}).encode())


def times(found: Trace) -> list[tuple[int, int]]:
    return list(zip(found.events.ts.tolist(), found.events.dur.tolist(), strict=True))


# Programs.


def test_perfetto_s_json_export() -> None:
    """Categories stay; arguments lie under ``args`` or have a prefix, flows are ``bind_id``."""
    found = read(
        {"ph": "M", "cat": "__metadata", "name": "process_name", "pid": 9, "args": {"name": "p"}},
        x("aten::mm", 1000.5, cat="cpu_op", bind_id="0x1", flow_out=True),
        x("gemm", 1002.5, cat="kernel", args={"device": 0, "stream": 7, "correlation": 4}),
        controllerTraceDataKey="systraceController",
        systemTraceEvents="SYSTRACE...",
    )
    assert found.events.kind.tolist() == [Kind.OPERATOR, Kind.KERNEL]
    assert times(found) == [(0, 5000), (2000, 5000)]


def test_chrome_s_own_trace() -> None:
    """Asynchronous, object and sample phases hold nothing of ours and break nothing."""
    found = read(
        x("RunTask", 79311183200, cat="toplevel", tdur=4, tts=1),
        {"ph": "b", "cat": "v8", "name": "b", "id": "0x1", "pid": 1, "tid": 1, "ts": 79311183210},
        {"ph": "e", "cat": "v8", "name": "b", "id2": {"local": "0x1"}, "pid": 1, "ts": 79311183211},
        {"ph": "O", "cat": "x", "name": "o", "id": "0x9", "args": {"snapshot": {}}, "ts": 1},
        {"ph": "P", "cat": "x", "name": "s", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "I", "cat": "x", "name": "frame", "pid": 1, "tid": 1, "ts": 79311183205, "s": "t"},
        metadata={"clock-domain": "LINUX_CLOCK_MONOTONIC"},
    )
    assert names(found) == ["RunTask"]
    assert found.instants.ts.tolist() == [5000]


def test_viztracer() -> None:
    found = read(
        x("f (/a/b.py:3)", 77.5, cat="fee"),
        {"ph": "C", "name": "memory", "args": {"rss": 1.5}, "pid": 1, "tid": 1, "ts": 80},
        {"ph": "i", "name": "log", "cat": "fee", "pid": 1, "tid": 1, "ts": 78, "s": "t"},
        viztracer_metadata={"version": "0.17", "overflow": False},
        file_info={"files": {"/a/b.py": ["def f():\n", 1]}, "functions": {}},
    )
    assert names(found) == ["f (/a/b.py:3)"]
    assert (found.counters.names, found.counters.value.tolist()) == (("memory",), [1.5])


def test_tensorflow_s_trace_viewer() -> None:
    """The list ends with an empty event, and ``displayTimeUnit`` changes no time."""
    found = read(x("f", 1.5), {}, displayTimeUnit="ns", metadata={"highres-ticks": True})
    assert times(found) == [(0, 5000)]


def test_gaudi_s_lanes_are_words() -> None:
    found = read(x("gemm", pid="TPC", tid="engine 1"))
    assert [(lane.pid, lane.tid) for lane in found.lanes] == [("TPC", "engine 1")]


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("DeepSpeedEngine.forward", "cpu_op"),
        ("execute_context_0(0)_generation_8(8)", "user_annotation"),
        ("void vllm::reshape_and_cache_kernel<__half>", "kernel"),
        ("sglang::[Rank 0] decode", "user_annotation"),
    ],
)
def test_inference_and_training_engines(name: str, category: str) -> None:
    found = read(x(name, cat=category, args={"stream": "7", "device": "0"}))
    assert names(found) == [name]
    assert found.events.kind[0] != Kind.OTHER


# Times.


@pytest.mark.parametrize(
    ("stamps", "expected"),
    [
        ((-5, -1.5, 3), [0, 3500, 8000]),
        (("10.5", " 11 ", "1.2e1"), [0, 500, 1500]),
        ((1.7e15, 1700000000000001.5), [0, 1500]),
        ((79311183200, 79311183200.001), [0, 1]),
    ],
)
def test_stamps_of_any_spelling(stamps: tuple[Any, ...], expected: list[int]) -> None:
    found = read(*(x(ts=stamp) for stamp in stamps))
    assert found.events.ts.tolist() == expected
    assert codes(found) == {}


def test_exponents_are_exact() -> None:
    """1.700000000000001e15 us is 1,700,000,000,000,001 us: one more, not none by rounding."""
    text = b'[{"ph":"X","name":"a","ts":1.7e15},{"ph":"X","name":"b","ts":1.700000000000001e15}]'
    assert trace.read(text).events.ts.tolist() == [0, 1000]


def test_a_missing_length_is_none_and_an_impossible_stamp_is_counted() -> None:
    first = x("no dur", 10)
    del first["dur"]
    found = read(first, x("far", 10**40), x("b", 20))
    assert times(found) == [(0, 0), (10_000, 5000)]
    assert codes(found) == {"missing_timestamps": 1}


# Values.


def test_numbers_that_no_column_holds_name_a_lane_all_the_same() -> None:
    found = read(x(pid=2**63), x(pid=10**30), x(tid=-(2**70)))
    assert len({(lane.pid, lane.tid) for lane in found.lanes}) == 3


@pytest.mark.parametrize("name", ["日本語 🔥 ñ", "\u202eright to left", "a\0b", "\n\t\r", "'\"\\"])
def test_names_of_any_characters(name: str) -> None:
    assert names(read(x(name))) == [name]


def test_a_raw_nul_in_a_name_is_mended() -> None:
    found = trace.read(b'{"traceEvents":[{"ph":"X","name":"a\x00b","ts":1,"dur":1}]}')
    assert names(found) == ["a\0b"]
    assert codes(found) == {"repaired_json": 1}


def test_a_bom_is_passed_over() -> None:
    assert len(trace.read(b"\xef\xbb\xbf" + json.dumps([x()]).encode()).events) == 1


def test_very_long_names_and_arguments() -> None:
    found = read(x("n" * 20_000_000), x("b", 20, args={"text": "t" * 40_000_000}))
    assert [len(name) for name in names(found)] == [20_000_000, 1]


# Structure.


@pytest.mark.parametrize("depth", [1_000, 1_000_000])
@pytest.mark.parametrize("brackets", ['{"a":', "["])
def test_arguments_nested_without_end_cost_only_their_event(depth: int, brackets: str) -> None:
    closing = {"[": "]"}.get(brackets, "}")
    nested = brackets * depth + ("1" if brackets != "[" else "") + closing * depth
    event = '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%d,"dur":1%s}'
    events = [
        event % ("a", 1, ""),
        event % ("deep", 2, f',"args":{{"x":{nested}}}'),
        event % ("b", 3, ""),
    ]
    found = trace.read(f'{{"traceEvents":[{",".join(events)}]}}'.encode())
    assert {"a", "b"} <= set(names(found))
    assert len(names(found)) == 3 or codes(found) == {"unreadable_records": 1}


def test_a_file_of_nothing_but_brackets() -> None:
    with pytest.raises(TraceError, match="no trace"):
        trace.read(b"[" * 1_000_000)
    with pytest.raises(TraceError, match="no trace"):
        trace.read(b'{"a":' * 1_000_000)


@pytest.mark.parametrize("position", ["first", "middle", "last"])
def test_the_events_may_stand_anywhere(position: str) -> None:
    entries = ['"a":{"b":[1,{"c":2}]}', '"baseTimeNanoseconds":5000000']
    listed = f'"traceEvents":[{json.dumps(x())}]'
    entries.insert({"first": 0, "middle": 1, "last": 2}[position], listed)
    found = trace.read(("{" + ",".join(entries) + "}").encode())
    assert names(found) == ["a"]
    assert found.base_ns == 5_000_000 + 10_000


def test_the_key_inside_another_object_or_a_text_is_not_the_list() -> None:
    inner = json.dumps({"traceEvents": [x("no")]})
    for before in (f'"other":{inner}', f'"note":{json.dumps(inner)}'):
        found = trace.read(f'{{{before},"traceEvents":[{json.dumps(x("yes"))}]}}'.encode())
        assert names(found) == ["yes"]


def test_two_lists_of_events_are_said() -> None:
    one, other = json.dumps([x("a")]), json.dumps([x("b"), x("c")])
    found = trace.read(f'{{"traceEvents":{one},"k":1,"traceEvents":{other}}}'.encode())
    assert names(found) == ["a"]
    assert codes(found) == {"second_list": 2}


@pytest.mark.parametrize(
    "text", ['{"traceEvents":[]}', '{"traceEvents":[],"displayTimeUnit":"ms"}']
)
def test_no_events_at_all(text: str) -> None:
    found = trace.read(text.encode())
    assert (len(found.events), codes(found)) == (0, {"no_events": 1})


def test_only_labels_are_no_events() -> None:
    label = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}
    assert codes(read(label)) == {"no_events": 1}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('// comment\n{"traceEvents":[]}', "plain text"),
        ("{'traceEvents': [{'ph': 'X'}]}", "damaged JSON"),
        ('callback({"traceEvents":[]})', "plain text"),
        ('{"data":{"nothing":1}}', "keys: data"),
        ('{"traceEvents":"[]"}', "no list"),
        ('{"traceEvents":{"0":{}}}', "no list"),
        ("eyJ0cmFjZUV2ZW50cyI6IFtdfQ==", "plain text"),
    ],
)
def test_what_is_no_json_of_ours_is_named(text: str, meaning: str) -> None:
    with pytest.raises(TraceError, match=meaning):
        trace.read(text.encode())


# The file system.


def test_links_are_followed_and_loops_are_refused(tmp_path: Path) -> None:
    made = Kineto()
    made.op("a", 1, 1)
    made.write(tmp_path / "real.json")
    (tmp_path / "link.json").symlink_to("real.json")
    (tmp_path / "loop.json").symlink_to("loop.json")
    assert len(trace.read(tmp_path / "link.json").events) == 1
    with pytest.raises(TraceError, match="Too many levels of symbolic links"):
        trace.read(tmp_path / "loop.json")
    files = trace.find_ranks(tmp_path)
    assert [file.path.name for file in files] == ["link.json", "real.json"]


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rank0.json"
    path.write_text("[]")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))  # as for anyone but root

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TraceError, match=r"Cannot open .*rank0\.json: Permission denied"):
        trace.read(path)


def test_a_file_whose_reading_fails(tmp_path: Path) -> None:
    """As a network disk does that is gone."""

    class Gone:
        name = "trace.json"

        def read(self, size: int) -> bytes:
            if size:
                raise OSError(5, "Input/output error")
            return b""

    with pytest.raises(TraceError, match="Input/output error"):
        trace.read(Gone())  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["cut", "replaced", "removed", "grown"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, ending: str) -> None:
    made = Kineto()
    for at in range(40_000):
        made.op("aten::mm", at, 1)
    path = made.write(tmp_path / "trace.json")
    whole = path.stat().st_size

    def change(read: int) -> None:
        if read < whole // 2:
            return
        if ending == "cut":
            os.truncate(path, whole // 2)
        elif ending == "replaced":
            path.with_suffix(".new").write_text("[]")
            path.with_suffix(".new").replace(path)
        elif ending == "removed":
            path.unlink(missing_ok=True)
        elif path.stat().st_size == whole:
            with path.open("a") as file:
                file.write("\n garbage")

    found = trace.open_trace(path, progress=change)
    assert len(found.events) > 15_000
    assert (len(found.events) == 40_000) == (ending in ("replaced", "removed", "grown"))
    assert ("truncated" in codes(found)) == (ending == "cut")
