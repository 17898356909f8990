"""The panel's JavaScript under node: its pure parts, and that the joined script is one."""

import json
from pathlib import Path

import pytest

from tests.js.node import node
from workbench import units
from workbench.pages.script import joined

HERE = Path(__file__).parent
WIDGETS = HERE.parents[1] / "widgets"
NUMBERS = HERE.parents[1] / "workbench/pages/numbers.js"


def test_numbers_scales_bins_and_messages():
    assert "# fail 0" in node("--test", "--test-reporter=tap", str(HERE / "panel.test.mjs"))


def test_pages_write_numbers_as_python_does():
    """One rule for a value in a chart and in the table below it (units.py is the other side)."""
    values = [
        sign * m * 10.0**e for e in range(-3, 13) for m in (0, 1, 1.2345, 9.995) for sign in (1, -1)
    ]
    counts = [0, 7, 999, 1000, 1_234_567]
    shares = [0.0, 1e-5, 0.0004, 0.00051, 0.0391, 0.0996, 0.391, 1.0]
    told = node(
        "--input-type=module",
        "-e",
        f"import * as n from '{NUMBERS}';"
        "const [values, counts, shares] = JSON.parse(process.env.VALUES);"
        "const each = (write, over) => over.map((v) => write(v));"
        "console.log(JSON.stringify([each(n.timeText, values), each(n.bytesText, values),"
        " each(n.significant, values), each(n.countText, counts), each(n.shareText, shares)]))",
        VALUES=json.dumps([values, counts, shares]),
    )

    assert json.loads(told) == [
        [units.time_text(value) for value in values],
        [units.bytes_text(value) for value in values],
        [units.significant(value) for value in values],
        [units.count_text(count) for count in counts],
        [units.share_text(share) for share in shares],
    ]


@pytest.mark.parametrize("entry", ["panel/panel.js", "switches.js"])
def test_the_modules_become_one_script_with_one_export(tmp_path: Path, entry: str):
    script = tmp_path / "joined.mjs"
    text = joined(WIDGETS / entry)
    script.write_text(text, encoding="utf-8")
    told = node("-e", f"import('{script}').then((all) => console.log(Object.keys(all)))")

    assert told.strip() == "[ 'default' ]"
    assert "import {" not in text
    assert "http" not in text  # nothing is fetched from anywhere
    assert "innerHTML" not in text  # names of others are only ever text
