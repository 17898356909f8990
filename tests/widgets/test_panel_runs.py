"""The Runs of a panel: listed, compared, noted, deleted; and where a finding is shown."""

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.kineto import Kineto
from tests.run.test_compare import measured
from tests.widgets.kernel import FINDING, Kernel
from tests.widgets.standin import done
from workbench.widgets.panel.runs import Shelf


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    measured(tmp_path, "slow", step_ms=20)
    measured(tmp_path, "fast", step_ms=10)
    made = Kernel(tmp_path)
    yield made
    made.panel.close()


def rows(kernel: Kernel) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in kernel.section("history")["rows"]}


def test_runs_of_the_folder_are_there_also_after_a_restart(kernel: Kernel):
    listed = rows(kernel)

    assert set(listed) == {"slow", "fast"}
    assert listed["slow"]["step"].startswith(("19.", "20."))  # planted: 20 ms ± 1 %
    assert listed["slow"]["settings"] == "as yours"


def test_a_baseline_gives_every_other_run_a_verdict(kernel: Kernel):
    kernel.page("baseline", name="slow")
    listed = rows(kernel)

    assert listed["fast"]["mark"] == "faster"
    assert listed["fast"]["verdict"].startswith("▲ 50")  # 10 ms after 20 ms: half
    assert listed["slow"]["verdict"] == ""


def test_a_comparison_and_a_run_open_as_plain_text(kernel: Kernel):
    assert "Choose a baseline" in kernel.page("compare", name="fast")["error"]
    kernel.page("baseline", name="slow")
    compared = kernel.page("compare", name="fast")["result"]
    opened = kernel.page("open", name="fast")["result"]

    assert compared["title"] == "fast against slow"
    assert "faster" in compared["text"]
    assert opened["title"] == "Run fast"
    assert "10." in opened["text"] or "9.9" in opened["text"]


def test_a_note_stays_beside_its_run(kernel: Kernel, tmp_path: Path):
    kernel.page("note", name="fast", text="two workers, evening")

    again = {row["name"]: row["note"] for row in Shelf(tmp_path).section()["rows"]}
    assert again == {"fast": "two workers, evening", "slow": ""}
    assert "no Run named" in kernel.page("note", name="../slow", text="x")["error"]


def test_deleting_takes_one_run_and_says_so(kernel: Kernel, tmp_path: Path):
    kernel.page("delete", name="slow")

    assert set(rows(kernel)) == {"fast"}
    assert not (tmp_path / "slow").exists()
    assert "slow was deleted" in kernel.section("status")["notice"]["text"]
    assert "error" in kernel.page("delete", name="..")
    assert (tmp_path / "fast").exists()


def trace(folder: Path) -> wb.Run:
    """Five steps of 500 us; the loop waits 100 us for data, in step 3 it waits 400 us."""
    made = Kineto(gpu=True)
    for number in range(1, 6):
        at, waits = 500 * number, 400 if number == 3 else 100
        made.step(number, at, 500)
        made.loader(at, waits)
        made.launched(
            "gemm", call=(at + waits, 10), kernel=(at + waits + 12, 60), correlation=number
        )
    return wb.open(made.write(folder / "trace.json"))


def test_show_me_opens_the_timeline_at_that_place(tmp_path: Path):
    kernel = Kernel(tmp_path)
    run = trace(tmp_path)
    kernel.session.become(bursts=(done(run, FINDING),))
    answer = kernel.page("show", finding="0")

    assert answer["result"]["widget"] == kernel.panel.timeline.model_id
    # The wait of step 3: from 1,500 µs for 400, counted from the first event at 500 µs.
    assert kernel.panel.timeline.selection.start_us == pytest.approx(1000)
    assert "400" in answer["result"]["note"]
    assert "input" in answer["result"]["note"]
    kernel.panel.close()
