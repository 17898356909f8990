"""Real traces recorded by others, with counts and device times that were taken independently."""

import json
import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.trace.reference import codes, names
from workbench import trace
from workbench.errors import TraceError
from workbench.trace.table import DEVICE_WORK, Kind, Trace

pytestmark = [pytest.mark.slow, pytest.mark.traces]

NOT_TRACES = ("execution-trace", "memory-snapshot", "sqlite", "xplane saved as text")
REFUSED = ("unparseable json", "memory timeline", *NOT_TRACES)
OTHER_FORMATS = ("xplane", "nsys-sqlite")
"""Read too, and counted in tests/trace/formats."""


def catalogue(root: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((root / "catalog.json").read_text())
    return entries


def kind_of(entry: dict[str, Any]) -> str:
    if "16845 non-object entries in the event list" in entry["notes"]:
        return "memory timeline"
    if "xplane parse: wire type" in entry["notes"]:
        return "xplane saved as text"
    return str(entry["analysis"]["kind"])


def counted(found: Trace) -> Counter[str]:
    """Events of each category, a joined begin and end as two."""
    tables = (found.events, found.flows, found.instants)
    counts = sum(
        (Counter(found.categories[c] for c in table.category.tolist()) for table in tables),
        Counter[str](),
    )
    counts["cpu_instant_event"] += len(found.memory.ts)
    return counts


class Told(NamedTuple):
    """What is compared of one file."""

    error: str
    categories: Counter[str]
    sizes: tuple[int, ...]
    """Durations, flows, memory events and lanes."""
    device: tuple[int, ...]
    """Span, busy and kernel time in nanoseconds, and kernels."""


@pytest.fixture(scope="module")
def told(traces_root: Path) -> dict[str, Told]:
    """Every file of the catalogue, read once."""
    names = {entry["file"] for entry in catalogue(traces_root)}
    return {name: _told(traces_root / name) for name in sorted(names)}


def _told(path: Path) -> Told:
    try:
        found = trace.read(path)
    except TraceError as error:
        return Told(str(error), Counter(), (), ())
    tables = (found.events, found.flows.ts, found.memory.ts, found.lanes)
    return Told("", counted(found), tuple(map(len, tables)), _device(found))


def test_counts_of_every_category_equal_the_catalogue(
    traces_root: Path, told: dict[str, Told]
) -> None:
    compared = 0
    for entry in catalogue(traces_root):
        expected = entry["analysis"]
        if kind_of(entry) in (*REFUSED, *OTHER_FORMATS) or set(expected["ph"]) & {"B", "E", "C"}:
            continue
        found = told[entry["file"]]
        for category, count in expected["cats"].items():
            if category in ("None", "cpu_instant_event"):
                continue
            assert found.categories[category] == count, (entry["file"], category)
        durations, flows, memory, _ = found.sizes
        assert durations == expected["ph"].get("X", 0), entry["file"]
        assert flows == sum(expected["ph"].get(phase, 0) for phase in "stf")
        assert memory == expected["memory_events"], entry["file"]
        compared += 1
    assert compared > 85


def test_every_file_is_read_or_refused_with_one_clear_error(
    traces_root: Path, told: dict[str, Told]
) -> None:
    for entry in catalogue(traces_root):
        found = told[entry["file"]]
        if kind_of(entry) not in REFUSED:
            assert found.sizes, found.error
            assert found.sizes[-1] > 0, entry["file"]
        else:
            assert found.error.startswith(Path(entry["file"]).name), entry["file"]


KNOWN_THERE = ("kernel", "concurrent_kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset")
"""Categories that the reference counts as device work; it knows no other vendor's copies."""


def test_device_times_equal_the_reference_to_the_nanosecond(
    traces_root: Path, told: dict[str, Told]
) -> None:
    reference = json.loads((traces_root / "reference_metrics.json").read_text())
    compared = 0
    for name, numbers in reference.items():
        if "gpu" not in numbers:
            continue
        expected = (
            *(round(numbers["gpu"][key] * 1000) for key in ("window_us", "busy_us")),
            round(numbers["kernel_time_sum_us"] * 1000),
            numbers["kernels"],
        )
        assert told[name].device == expected, name
        compared += 1
    assert compared > 60


def _device(found: Trace) -> tuple[int, ...]:
    known = [i for i, name in enumerate(found.categories) if name.lower() in KNOWN_THERE]
    work = found.events.rows(*DEVICE_WORK)
    work = work[np.isin(found.events.category[work], known)]
    if not len(work):
        return ()
    kernels = found.events.rows(Kind.KERNEL)
    start, end = found.events.ts[work], found.events.end[work]
    span, total = int(end.max() - start.min()), int(found.events.dur[kernels].sum())
    return span, _union(start, end), total, len(kernels)


def _union(start: Any, end: Any) -> int:
    """Length of a union of intervals that are sorted by start."""
    reach = np.maximum.accumulate(end)
    begins = np.concatenate([[True], start[1:] > reach[:-1]])
    last = np.flatnonzero(np.append(begins[1:], True))
    return int((reach[last] - start[begins]).sum())


MALFORMED: dict[str, tuple[int, set[str]]] = {
    "array_of_events.json": (0, set()),
    "bom.json": (0, set()),
    "control_char_in_name.json": (0, {"repaired_json"}),
    "empty_events.json": (0, {"no_events"}),
    # One duration has no start that is a number, one ends before it starts, and three elements of
    # the list are no objects.
    "field_zoo.json": (2, {"missing_timestamps", "negative_duration", "unreadable_records"}),
    "gzip_content_named.json": (0, set()),
    "gzip_two_members.json.gz": (0, set()),
    "json_lines.jsonl": (0, {"repaired_json"}),
    "kernel_ts0_dur0.json": (1, {"zero_timestamps"}),
    "lone_surrogate.json": (0, {"repaired_json"}),
    "no_profiler_steps.json.gz": (0, set()),
    "no_runtime_no_flows.json.gz": (0, set()),
    "string_ts_dur.json": (0, set()),
    "trailing_comma.json": (0, {"repaired_json"}),
    # The record that was being written when the file was cut.
    "truncated_gzip.json.gz": (1, {"truncated"}),
    "truncated_mid_event.json": (1, {"truncated"}),
    "zipped_trace.zip": (0, set()),
}
"""How many of the durations in the text cannot be read, and what must be noted."""
REFUSED_MALFORMED = {
    "empty_array.json": "no events",
    "empty_object.json": "empty JSON object",
    "html_error_page.json": "web page",
    "not_json.json": "plain text",
}


def text_of(path: Path) -> bytes:
    """The text of a file, unpacked by other means than the reader's."""
    data = path.read_bytes()
    if data.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            return archive.read(archive.namelist()[0])
    text = bytearray()
    while data.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(31)
        text += member.decompress(data)
        data = member.unused_data
    return bytes(text or data)


def test_damaged_and_odd_files(traces_root: Path) -> None:
    folder = traces_root / "malformed"
    files = {path.name for path in folder.iterdir()}
    assert files == {*MALFORMED, *REFUSED_MALFORMED, "two_documents.json"}
    for name, (left_out, noted) in MALFORMED.items():
        found = trace.read(folder / name)
        durations = len(re.findall(rb'"ph"\s*:\s*"X"', text_of(folder / name)))
        assert len(found.events) == durations - left_out, name
        assert set(codes(found)) == noted, name
    for name, meaning in REFUSED_MALFORMED.items():
        with pytest.raises(TraceError, match=meaning):
            trace.read(folder / name)


def test_of_two_documents_the_first_is_read(traces_root: Path) -> None:
    folder = traces_root / "malformed"
    both, one = trace.read(folder / "two_documents.json"), trace.read(folder / "bom.json")
    assert names(both) == names(one)
    assert codes(both) == {"repaired_json": 1}
