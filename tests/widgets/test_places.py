"""*Show me*: the gap, the operator or the step that a finding speaks of, by its code."""

from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.house.files import ROOT
from tests.kineto import Kineto
from tests.widgets.kernel import FINDING
from workbench.run.run import Run
from workbench.widgets.timeline import Selection, Timeline
from workbench.widgets.timeline.places import PLACES, has_place


def loop(folder: Path, *, gpu: bool) -> Run:
    """Five steps of 500 µs; the loop waits 100 µs for data, in step 3 it waits 400 µs.

    In step 4 the optimizer takes 90 µs, else 50; the first step has the longest operator.
    """
    made = Kineto(gpu=gpu)
    for number in range(1, 6):
        at, waits = 500 * number, 400 if number == 3 else 100
        made.step(number, at, 500)
        made.loader(at, waits)
        made.op("Optimizer.step#SGD.step", at + waits + 5, 90 if number == 4 else 50)
        if gpu:
            made.launched(
                "gemm", call=(at + waits, 4), kernel=(at + waits + 12, 60), correlation=number
            )
    return wb.open(made.write(folder / "trace.json"))


def shown(run: Run, code: str) -> Selection | None:
    timeline = run.timeline(static=False)
    assert isinstance(timeline, Timeline)
    found = timeline.show(replace(FINDING, code=code))
    place = dict(timeline._place)
    timeline.close()
    if found is not None and place["event"] >= 0:  # the page shows it with its neighbours
        assert place["from"] <= found.start_us * 1000
        assert place["to"] >= (found.start_us + found.duration_us) * 1000
    return found


@pytest.mark.parametrize("gpu", [True, False])
def test_waiting_for_data_is_shown_at_the_longest_wait(tmp_path: Path, *, gpu: bool):
    found = shown(loop(tmp_path, gpu=gpu), "WB101")

    assert found is not None
    # Step 3 waits from 1,500 µs on, which is 1,000 after the first event at 500.
    assert (found.start_us, found.duration_us) == (pytest.approx(1000), pytest.approx(400))
    assert found.lane is not None
    assert ("idle, by cause" in found.lane) is gpu  # without a device, the loader's own record


def test_an_unbatched_optimizer_is_shown_at_its_longest_step(tmp_path: Path):
    found = shown(loop(tmp_path, gpu=False), "WB205")

    assert found is not None
    assert found.name == "Optimizer.step#SGD.step"
    assert (found.start_us, found.duration_us) == (pytest.approx(1605), pytest.approx(90))


def test_a_step_that_meets_a_new_shape_is_shown_as_the_longest_step(tmp_path: Path):
    found = shown(loop(tmp_path, gpu=False), "WB208")

    assert found is not None
    assert (found.name, found.duration_us) == (None, pytest.approx(500))


def test_what_speaks_of_the_whole_run_has_no_place(tmp_path: Path):
    assert not has_place("WB902")
    assert shown(loop(tmp_path, gpu=False), "WB902") is None


def test_every_place_is_of_a_finding_that_there_is():
    documented = (ROOT / "docs/findings.md").read_text(encoding="utf-8")

    assert [code for code in PLACES if f"## {code}" not in documented] == []
