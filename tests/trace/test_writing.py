"""Writing a trace: valid JSON for every viewer, and the same table when it is read back."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.kineto import Kineto
from tests.trace.documents import documents
from tests.trace.tables import tables
from workbench.errors import TraceError
from workbench.trace import read
from workbench.trace.table import Device, Trace
from workbench.trace.writing import write_trace

pytestmark = pytest.mark.slow


PER_TEST = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def trace_of(made: Kineto) -> Trace:
    return read(json.dumps(made.document()).encode())


def two_ops() -> Kineto:
    made = Kineto()
    made.op("aten::mm", 1000, 10)
    made.op("aten::add", 1020.125, 5)
    return made


def strictly(text: str) -> Any:
    """As viewers parse: NaN and Infinity are no JSON."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


@given(documents())
@settings(max_examples=150, deadline=None, suppress_health_check=PER_TEST)
def test_what_is_written_reads_back_as_the_same_table(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    trace = read(json.dumps(document).encode())

    write_trace(trace, tmp_path / "t.json", overwrite=True)

    strictly((tmp_path / "t.json").read_text())
    assert tables(read(tmp_path / "t.json")) == tables(replace(trace, source="t.json"))


@pytest.mark.traces
@pytest.mark.parametrize(
    ("largest", "least"), [(60_000, 30), pytest.param(400_000, 40, marks=pytest.mark.soak)]
)
def test_real_traces_read_back_as_the_same_table(
    traces_root: Path, tmp_path: Path, largest: int, least: int
) -> None:
    compared = 0
    for path in sorted(traces_root.rglob("*.json*")):
        if path.stat().st_size > largest:
            continue
        try:
            trace = read(path)
        except TraceError:
            continue
        if not len(trace.events):
            continue
        out = tmp_path / f"{path.name.partition('.json')[0]}.json.gz"
        write_trace(trace, out, overwrite=True)
        assert tables(read(out)) == tables(trace), path.name
        compared += 1
    assert compared > least


def test_stamps_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    """As text: 1020.125 us behind the base, not a rounded double."""
    write_trace(trace_of(two_ops()), tmp_path / "t.json")
    events = strictly((tmp_path / "t.json").read_text())["traceEvents"]

    assert [event["ts"] for event in events if event["ph"] == "X"] == [1000, 1020.125]
    assert '"ts":1020.125,' in (tmp_path / "t.json").read_text()


def test_absolute_stamps_become_small_ones_with_a_base(tmp_path: Path) -> None:
    """Viewers keep stamps as doubles, which round Unix time to a quarter of a microsecond."""
    made = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1_700_000_000_000_000, "dur": 1}
    trace = read(json.dumps([made]).encode())
    write_trace(trace, tmp_path / "t.json")
    document = strictly((tmp_path / "t.json").read_text())
    event = next(event for event in document["traceEvents"] if event["ph"] == "X")

    assert event["ts"] < 2**31
    assert document["baseTimeNanoseconds"] + event["ts"] * 1000 == 1_700_000_000 * 10**9
    assert read(tmp_path / "t.json").base_ns == 1_700_000_000 * 10**9


def test_names_are_escaped(tmp_path: Path) -> None:
    made = Kineto()
    made.op('</script>"\\\x01\u2028', 1, 1)
    write_trace(trace_of(made), tmp_path / "t.json")

    assert (tmp_path / "t.json").read_text().isascii()
    assert '</script>"\\\x01\u2028' in read(tmp_path / "t.json").names


def test_a_name_that_ends_in_gz_is_compressed_and_the_same_every_time(tmp_path: Path) -> None:
    written = write_trace(trace_of(two_ops()), tmp_path / "a.json.gz")
    write_trace(trace_of(two_ops()), tmp_path / "b.json.gz")

    assert strictly(gzip.decompress((tmp_path / "a.json.gz").read_bytes()).decode())
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert written.records == 2
    assert written.size_bytes == (tmp_path / "a.json.gz").stat().st_size


def test_processes_are_named_and_the_host_comes_first(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    made.kernel("gemm", 1, 1)
    made.op("aten::mm", 2, 1)
    for pid in (0, 100):
        label = {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "python"}}
        made.events.append(label)
    write_trace(trace_of(made), tmp_path / "t.json")
    labels = [
        e for e in strictly((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "M"
    ]
    order = {e["pid"]: e["args"]["sort_index"] for e in labels if e["name"] == "process_sort_index"}
    on = {e["pid"]: e["args"]["labels"] for e in labels if e["name"] == "process_labels"}

    assert order[100] < order[0]
    assert on == {100: "CPU", 0: "GPU 0"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 0.1])
def test_counters_without_a_json_number_survive(tmp_path: Path, value: float) -> None:
    made = two_ops()
    made.events.append({"ph": "C", "name": "load", "pid": 1, "ts": 1, "args": {"v": 1.0}})
    trace = trace_of(made)
    trace = replace(trace, counters=replace(trace.counters, value=np.array([value])))
    write_trace(trace, tmp_path / "t.json")
    strictly((tmp_path / "t.json").read_text())

    np.testing.assert_equal(read(tmp_path / "t.json").counters.value, [value])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("t.txt", r"must end in \.json or \.json\.gz"),
        ("gone/t.json", "is no folder"),
        ("taken.json", "is there already"),
        ("folder.json", "is a folder"),
    ],
)
def test_a_place_that_will_not_do_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "taken.json").write_text("precious")
    (tmp_path / "folder.json").mkdir()

    with pytest.raises(TraceError, match=said):
        write_trace(trace_of(two_ops()), tmp_path / name)
    assert (tmp_path / "taken.json").read_text() == "precious"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_on_the_way_leaves_nothing_behind(tmp_path: Path, error: BaseException) -> None:
    def fail(_: int) -> None:
        raise error

    with pytest.raises((TraceError, KeyboardInterrupt)) as raised:
        write_trace(trace_of(two_ops()), tmp_path / "t.json", progress=fail)
    assert isinstance(error, KeyboardInterrupt) or "free some space" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_what_was_written(tmp_path: Path) -> None:
    told: list[int] = []
    write_trace(trace_of(two_ops()), tmp_path / "t.json", progress=told.append)

    assert told == sorted(told)
    assert told[-1] >= 2


def test_an_overwritten_file_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("old")
    write_trace(trace_of(two_ops()), tmp_path / "t.json", overwrite=True)

    assert len(read(tmp_path / "t.json").events) == 2


def test_devices_of_formats_without_a_header_stay(tmp_path: Path) -> None:
    """A database or a protobuf tells devices, but in no header that could be copied."""
    made = Kineto(gpu=True)
    made.kernel("gemm", 1, 1)
    device = Device(index=0, type="tpu", name="v5", arch="5e", memory_bytes=16)
    trace = replace(trace_of(made), header={}, devices=(device,))
    write_trace(trace, tmp_path / "t.json")

    assert read(tmp_path / "t.json").devices == (device,)
