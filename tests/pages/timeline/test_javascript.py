"""The timeline's scripts under node: their own tests, and Python's bytes on their side."""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.files import ROOT
from tests.js.node import node
from tests.pages.timeline.test_encode import small
from workbench.pages.script import joined
from workbench.pages.timeline.assets import HERE, page_script, widget_script
from workbench.pages.timeline.encode import raw, rows_of
from workbench.pages.timeline.labels import NAMES

TESTS = ROOT / "tests/js/timeline.test.mjs"


def test_the_scripts_pass_their_own_tests_and_read_what_python_packs(tmp_path: Path):
    scene = small()
    pairs = scene.labels.pairs()
    # Event rows 7, 8, 20 and 21 stand at 1, 2, 3 and 4: the kernel leads to 2, the gap to 4.
    link = {3: 2, 5: 4}
    events = [
        {
            "name": pairs[code][0],
            "category": NAMES[pairs[code][1]],
            "start": int(start),
            "end": int(start + dur),
        }
        for track in scene.tracks
        for start, dur, code in zip(track.start, track.dur, track.label, strict=True)
    ]
    truth = {
        "events": [{**each, "link": link.get(i, -1)} for i, each in enumerate(events)],
        "tracks": [[track.kind, track.name, len(rows_of(track))] for track in scene.tracks],
        "counter": {"at": [-50, 99_950], "value": [0, 1234600]},  # µs and five digits are kept
    }
    packed, told = tmp_path / "scene.txt", tmp_path / "truth.json"
    packed.write_text(base64.b64encode(raw(scene)).decode(), encoding="ascii")
    told.write_text(json.dumps(truth), encoding="utf-8")
    said = node("--test", str(TESTS), TIMELINE_SCENE=str(packed), TIMELINE_TRUTH=str(told))
    assert "# skipped 0" in said


@pytest.mark.parametrize("script", [widget_script, page_script], ids=["widget", "page"])
def test_one_script_is_made_of_all_of_them(script: Callable[[], str], tmp_path: Path):
    file = tmp_path / "joined.mjs"
    file.write_text(script(), encoding="utf-8")
    node("--check", str(file))
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script(), re.MULTILINE)
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert "import {" not in script()


def test_a_module_stands_before_what_needs_it():
    text = joined(HERE / "widget.js")
    order = ["function firstAbove", "class Painter", "class Timeline", "function kernelOf"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


def test_nothing_in_the_scripts_fetches_or_writes_markup():
    """Text from traces reaches the page by textContent only, and nothing is asked for outside."""
    shared = [ROOT / f"workbench/pages/{name}.js" for name in ("numbers", "sorted", "buffers")]
    for file in [*shared, *(ROOT / "workbench/pages/timeline").glob("*.js")]:
        text = file.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "fetch(", "XMLHttpRequest",
                     "eval(", "new Function", "https://", "http://"):  # fmt: skip
            assert word not in text, (file.name, word)
