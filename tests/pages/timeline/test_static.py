"""The timeline without a kernel: its size, its words, and what a hostile trace cannot do."""

import base64
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.kineto import Kineto
from tests.pages.timeline import loop, made
from workbench.errors import RunError
from workbench.pages.timeline.static import StaticTimeline
from workbench.pages.timeline.strips import png, strip
from workbench.run.timeline import scene_of

HOSTILE = '</script><img src=x onerror="alert(1)"><script>alert(2)</script>\u2028'


def test_the_overview_is_a_table_with_a_picture_a_lane(tmp_path: Path):
    text = StaticTimeline(scene=scene_of(loop.run(tmp_path))).overview()
    assert text.count("<img ") == 5
    assert 'alt="GPU 0 (NVIDIA A100-SXM4-40GB) · stream 7: filled 50 % of the time"' in text
    assert "<script" not in text
    assert "<svg" not in text
    # Idle from 460 to 1990 µs: 400 of 510 µs in the loader.
    assert re.search(r"<td>input</td><td>400 µs</td><td>\d+ %</td>", text)


def test_it_prints_as_lines(tmp_path: Path):
    text = repr(loop.run(tmp_path).timeline(static=True))
    # From 460 to 1990 µs the device idles between 960 and 1460 and from 1960 to 1970; 400 in input.
    said = "GPU 0 (NVIDIA A100-SXM4-40GB) idles 33 % of the recording, mostly waiting for data"
    assert text.splitlines()[0] == said
    assert text.splitlines()[1].startswith("Timeline of loop.json.gz: 2.00 ms, ")
    assert "stream 7" in text


@pytest.mark.parametrize("most", [150_000, 500_000])
def test_a_large_scene_stays_under_its_limit(most: int):
    page = StaticTimeline(scene=made.busy_scene(300_000), most_bytes=most).html()
    assert len(page.encode()) <= most
    assert len(page.encode()) > most * 0.6
    assert "are drawn together" not in page, "it is told in the data, and the overview is whole"


def test_a_limit_that_cannot_be_kept_is_refused(tmp_path: Path):
    with pytest.raises(RunError, match="give more"):
        loop.run(tmp_path).timeline(static=True, most_bytes=1000)


def test_names_from_the_trace_stay_text(tmp_path: Path):
    trace = Kineto(gpu=True)
    trace.event(HOSTILE, "user_annotation", 0, 10, tid=5)
    trace.launched(HOSTILE, call=(0, 5), kernel=(10, 20), correlation=1)
    trace.header["deviceProperties"][0] = {
        **trace.header["deviceProperties"][0],
        "name": HOSTILE,
    }
    page = wb.open(trace.write(tmp_path / "x.json")).timeline(static=True).html()  # type: ignore[union-attr]
    seen = Seen()
    seen.feed(page)
    assert seen.tags <= {
        *("style", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "img", "p"),
        "script",
    }
    assert seen.scripts == 2
    assert not [name for name in seen.attributes if name.startswith("on")]


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [name for name, _ in attrs]
        self.scripts += tag == "script"


def test_a_trace_without_events_says_so():
    from workbench.pages.timeline.labels import Labels
    from workbench.pages.timeline.scene import Scene

    empty = Scene(
        title="none", tracks=(), counters=(), labels=Labels(), start=0, end=0, ranks=("",)
    )
    assert "no event to draw" in StaticTimeline(scene=empty).html()


def test_a_strip_shows_work_where_it_is_and_nothing_where_none_is(tmp_path: Path):
    scene = scene_of(loop.run(tmp_path))
    stream = next(track for track in scene.tracks if track.name == "stream 7")
    row = pixels(strip(scene, stream))[0]
    # Kernels at 460 to 960 and 1460 to 1960 of 2000 µs, in 640 columns: 147.2 to 307.2, …
    assert (row[150:300, 3] == 255).all()
    assert (row[:147, 3] == 0).all()
    assert (row[310:460, 3] == 0).all()
    assert row[200, :3].tolist() == [0x00, 0x72, 0xB2]  # compute


def test_a_picture_is_a_valid_file():
    image = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    data = "data:image/png;base64," + base64.b64encode(png(image)).decode()
    assert (pixels(data) == image).all()


def pixels(address: str) -> np.ndarray:
    """A PNG of 8-bit RGBA without filters, read by the book."""
    data = base64.b64decode(address.partition(",")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (check,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert check == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape(height, width, 4)


def test_what_needs_a_widget_says_so(tmp_path: Path) -> None:
    page = StaticTimeline(scene=scene_of(loop.run(tmp_path)))
    assert page.selection is None
    for asked in (lambda: page.go_to(5031.2, 5988.0), page.summary):
        with pytest.raises(RunError, match=r"run\.timeline\(static=False\)"):
            asked()
