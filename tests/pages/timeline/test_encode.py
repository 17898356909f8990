"""From a scene to bytes: nothing is lost on the way, and small numbers take little room."""

import gzip
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pages.timeline import made
from workbench.pages.timeline.encode import categories, pack, raw, shuffled, zigzag
from workbench.pages.timeline.labels import KNOWN, Labels
from workbench.pages.timeline.scene import Counter, Scene, track

LARGEST = 2**40


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """The header and the columns, read a byte at a time."""
    plain = gzip.decompress(data)
    assert plain[:4] == b"WBT1"
    (size,) = struct.unpack("<I", plain[4:8])
    header = json.loads(plain[8 : 8 + size])
    at, columns = 8 + size, {}
    for column in header["columns"]:
        width, length = column["width"], column["length"]
        part = plain[at : at + width * length]
        at += width * length
        columns[column["name"]] = [
            sum(part[place * length + i] << (8 * place) for place in range(width))
            for i in range(length)
        ]
    assert at == len(plain)
    return header, columns


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ([1, 2, 255], b"\x01\x02\xff"),
        ([256, 1], b"\x00\x01\x01\x00"),  # low bytes 0 and 1, then high bytes 1 and 0
        ([2**32], b"\x00\x00\x00\x00\x01\x00\x00\x00"),
        ([], b""),
    ],
)
def test_bytes_of_equal_weight_lie_together(values: list[int], data: bytes):
    assert shuffled(np.array(values, np.int64)) == data


def test_references_are_told_by_their_change():
    # 5: from 0 up 5 = 2*5, plus 1; none: 0; 5 again: no change, plus 1; 3: down 2 = 2*2-1, plus 1
    assert zigzag(np.array([5, -1, 5, 3])).tolist() == [11, 0, 1, 4]


@given(st.lists(st.integers(-1, LARGEST), max_size=40))
def test_every_reference_comes_back(references: list[int]):
    last, back = 0, []
    for code in zigzag(np.array(references, np.int64)).tolist():
        if code:
            change = code - 1
            last += change // 2 if change % 2 == 0 else -(change + 1) // 2
        back.append(last if code else -1)
    assert back == references


def small() -> Scene:
    labels = Labels()
    step, op = labels.of("step 3", "step"), labels.of("aten::mm", "host_operators")
    gap = labels.of("idle: input", "input")
    kernel = labels.of("</script><b>", "compute")
    steps = track("steps", "Steps", "", 0, arr(-50), arr(500), arr(step))
    thread = track("thread", "main", "Host", 0, arr(10, 0), arr(5, 100), arr(op, op), row=arr(8, 7))
    stream = track(
        "stream", "stream 7", "GPU 0", 0, arr(130, 200), arr(20, 40), arr(kernel, kernel),
        row=arr(20, 21), link=arr(8, -1), device=0,
    )  # fmt: skip
    idle = track(
        "idle", "idle, by cause", "GPU 0", 0, arr(150), arr(50), arr(gap), link=arr(21), of=arr(7)
    )
    counter = Counter(
        name="memory", group="Memory", rank=0, unit="bytes",
        at=arr(0, 100_000), value=np.array([0.0, 1234567.0]),
    )  # fmt: skip
    return made.scene_of(steps, thread, stream, idle, labels=labels, counters=(counter,))


def arr(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_columns_hold_distances_lengths_and_places():
    header, columns = unpacked(pack(small()))
    # Rows: the step from the scene's start, -50; the outer operator at 0, the inner at 10 opens a
    # row of its own; kernels at 130 and 50 behind the end of the first; the gap at 150.
    assert columns["start"] == [0, 50, 60, 180, 50, 200]
    assert columns["dur"] == [500, 100, 5, 20, 40, 50]
    # Event rows 7 and 8 stand at 1 and 2, kernels 20 and 21 at 3 and 4.
    link = {3: 2, 5: 4}
    assert columns["link"] == zigzag(np.array([link.get(i, -1) for i in range(6)])).tolist()
    assert columns["of"] == zigzag(np.array([-1] * 5 + [1])).tolist()
    assert [each["rows"] for each in header["tracks"]] == [[1], [1, 1], [2], [1]]
    assert header["counters"][0]["at"] == [0, 100]  # µs from the scene's start, then on
    assert header["names"][header["labels"][2 * columns["label"][3]]] == "</script><b>"


def test_the_palette_goes_along_in_the_order_of_its_codes():
    header, _ = unpacked(pack(small()))
    assert header["categories"] == categories()
    names = [each["name"] for each in header["categories"]]
    assert names == list(KNOWN)
    assert {each["colour"] for each in categories() if each["name"] == "input"} == {"#E69F00"}


def test_a_million_events_take_few_bytes_each():
    scene = made.busy_scene(100_000)
    # 2 random bytes of length and pause, 6 bits of name: 4 to 5 bytes cannot be avoided; a launch
    # is nearly free. Base64 of 4.2 bytes for a million events is 5.6 MB.
    assert len(pack(scene)) / len(scene) < 4.2
    assert len(raw(scene)) > 2 * len(pack(scene))


def test_times_longer_than_four_seconds_fit():
    labels = Labels()
    code = labels.of("slow", "compute")
    far = 10 * 10**9
    scene = made.scene_of(
        track("stream", "s", "GPU 0", 0, arr(0, far), arr(5 * 10**9, 1), arr(code, code)),
        labels=labels,
    )
    _, columns = unpacked(pack(scene))
    assert columns["start"] == [0, 5 * 10**9]
    assert columns["dur"] == [5 * 10**9, 1]
