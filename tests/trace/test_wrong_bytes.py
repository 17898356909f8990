"""Wrong bytes anywhere in a file: numbers and a word about it, or one error."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.kineto import Kineto
from workbench import trace
from workbench.errors import TraceError, WorkbenchError
from workbench.run.source import open_run
from workbench.trace.table import Trace

pytestmark = pytest.mark.slow

BOUNDED = settings(deadline=None, suppress_health_check=list(HealthCheck))


def made() -> Kineto:
    """Two steps with everything that a reader looks at."""
    made = Kineto(gpu=True)
    for step in range(2):
        at, first = 1000 * step, 10 * step
        made.step(step + 1, at, 1000)
        made.loader(at + 1, 50)
        made.python("train.py(5): step", at + 60, 700, ident=first + 1, parent=None)
        made.op("aten::mm", at + 70, 50, **{"Input Dims": [[2, 3], [3, 4]], "External id": first})
        made.launched("gemm", call=(at + 80, 5), kernel=(at + 120, 60), correlation=100 + first)
        group = {"Collective name": "allreduce", "In msg nelems": 1024, "Group size": 2}
        made.kernel("ncclDevKernel_AllReduce", at + 230, 200, stream=20, **group)
        memory = {"Bytes": 4096, "Total Allocated": 4096, "Addr": 1, "Device Type": 1}
        place = {"pid": 100, "tid": 100, "ts": at + 75, "s": "t"}
        made.events.append({"ph": "i", "name": "[memory]", **place, "args": memory})
        made.events.append({"ph": "s", "id": first, "cat": "ac2g", **place})
    return made


def zipped(text: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", text)
    return file.getvalue()


TEXT = json.dumps(made().document(), indent=1).encode()
ARRAY = json.dumps(made().events).encode()
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
}
PACKED = {name: pack(TEXT) for name, pack in PACKINGS.items()}

PLACE = st.floats(0, 1, exclude_max=True)
CHANGES = st.one_of(
    st.tuples(st.just("byte"), PLACE, st.binary(min_size=1, max_size=1)),
    st.tuples(st.just("inserted"), PLACE, st.binary(min_size=1, max_size=3)),
    st.tuples(st.just("deleted"), PLACE, st.integers(1, 40)),
    st.tuples(st.just("run"), PLACE, st.integers(2, 200).map(bytes)),
)


def changed(data: bytes, change: tuple[str, float, Any]) -> bytes:
    how, share, what = change
    at = int(share * len(data))
    if how == "inserted":
        return data[:at] + what + data[at:]
    if how == "deleted":
        return data[:at] + data[at + what :]
    return data[:at] + what + data[at + len(what) :]


def columns(found: Trace) -> list[Any]:
    """Everything that the events of a trace tell."""
    events = found.events
    told = [events.ts, events.dur, events.device, events.correlation, events.external_id]
    told += [events.bytes, found.memory.bytes, found.flows.id]
    names = [found.names[code] for code in events.name.tolist()]
    return [names, *(column.tolist() for column in told)]


WHOLE = columns(trace.read(TEXT))


@pytest.mark.parametrize("name", PACKED)
@BOUNDED
@given(change=CHANGES)
def test_what_has_a_checksum_is_the_same_or_said_to_be_damaged(
    name: str, change: tuple[str, float, Any]
) -> None:
    try:
        found = trace.read(changed(PACKED[name], change))
    except TraceError:
        return
    assert found.violations or columns(found) == WHOLE


@pytest.mark.parametrize("text", [TEXT, ARRAY], ids=["object", "array"])
@BOUNDED
@given(change=CHANGES)
@example(change=("byte", 0.5, b"\xff"))
def test_text_that_is_not_legal_json_is_refused_or_said_to_be_mended(
    text: bytes, change: tuple[str, float, Any]
) -> None:
    data = changed(text, change)
    try:
        json.loads(data)
        legal = True
    except ValueError:
        legal = False
    try:
        found = trace.read(data)
    except TraceError:
        return
    assert legal or found.violations or columns(found) == WHOLE


def test_a_key_that_is_no_utf8_is_lost_and_said() -> None:
    data = TEXT.replace(b'"correlation": 100', b'"c\xffrrelation": 100', 1)
    assert [violation.code for violation in trace.read(data).violations] == ["repaired_json"]


def test_a_list_that_lost_its_opening_bracket_is_read_and_said_to_be_mended() -> None:
    found = trace.read(ARRAY[1:])
    assert columns(found) == WHOLE
    assert [violation.code for violation in found.violations] == ["repaired_json"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_everything_before_the_damage_is_read(pack: Callable[[bytes], bytes]) -> None:
    # Both find a wrong byte where it stands; bzip2 only at the end of a block of 900 kB.
    data = bytearray(pack(TEXT))
    at = len(data) * 2 // 3
    data[at : at + 8] = bytes(8)
    found = trace.read(bytes(data))
    assert len(found.events) > 0
    assert {violation.code for violation in found.violations} & {"truncated", "wrong_checksum"}
    assert columns(found)[0][:3] == WHOLE[0][:3]


@settings(BOUNDED, max_examples=12)
@given(
    st.sampled_from([TEXT, ARRAY, PACKED["gzip"]]),
    st.lists(CHANGES, min_size=1, max_size=3),
)
def test_answers_are_numbers_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, changes: list[Any]
) -> None:
    for change in changes:
        data = changed(data, change)
    answer(tmp_path_factory.mktemp("wrong") / "trace.json", data)


VALUES = st.sampled_from(
    [
        *(None, True, "", "x", "5", "-5", "1e999", -1, 0, 1.5, 1e308, 2**63, 10**30, -(2**63)),
        *(float("nan"), float("inf"), [], [[1]], {}, {"a": 1}, "\ud800", "\0", "9" * 400),
    ]
)
KEYS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id"]
ARGUMENTS = sorted({key for event in made().events for key in event.get("args", {})})


@settings(BOUNDED, max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(KEYS + ARGUMENTS), VALUES), max_size=8)
)
def test_values_of_wrong_types_give_sound_answers(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, str, Any]]
) -> None:
    document = made().document()
    events = document["traceEvents"]
    for place, key, value in changes:
        event = events[place % len(events)]
        if key in KEYS:
            event[key] = value
        elif isinstance(event.get("args"), dict):
            event["args"][key] = value
    data = json.dumps(document).encode("utf-8", "surrogatepass")
    answer(tmp_path_factory.mktemp("values") / "trace.json", data)


def answer(path: Path, data: bytes) -> None:
    """Ask everything that ``workbench analyze --json`` asks."""
    path.write_bytes(data)
    try:
        told = open_run(path).summary.to_json()
    except WorkbenchError:
        return
    assert json.loads(json.dumps(told, allow_nan=False)) is not None
    for rank in told["ranks"]:
        for device in rank["devices"]:
            sound(device)
        for kernel in rank["kernels"] or ():
            assert 0 <= kernel["share"] <= 1
    for finding in told["findings"]:
        assert finding["share_of_window"] is None or 0 <= finding["share_of_window"] <= 1


def sound(device: dict[str, Any]) -> None:
    """No negative time, and nothing longer than the span it is a part of."""
    for period in ("recording", "window"):
        if device[period] is not None:
            times = device[period]["time"]
            assert all(0 <= value <= times["span_us"] for value in times.values())
