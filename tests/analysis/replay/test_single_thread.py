"""Without a device the loop's thread is the path, and what it does not do it saves."""

import pytest

from tests.analysis.replay.cases import path_us, replayed, saving_us
from tests.kineto import Kineto
from workbench.analysis.replay.answers import bounds, reproduction, scenarios
from workbench.analysis.replay.scenario import faster_family, hidden, without_gap
from workbench.analysis.replay.single_thread import ThreadReplay

US = 1_000


def on_cpu() -> Kineto:
    """Steps of 1000 us, of which 350 are nothing that was recorded."""
    made = Kineto()
    for number in (1, 2, 3):
        at = 1000 * number
        made.step(number, at, 1000)
        made.loader(at, 300)
        made.range("forward", at + 300, 200)
        made.op("aten::linear", at + 300, 200)
        made.op("aten::mm", at + 320, 150)
        made.range("workbench.gc", at + 550, 50)
        made.range("Optimizer.step#SGD.step", at + 600, 100)
    return made


def replay(made: Kineto, chosen: int | None = None) -> ThreadReplay:
    found = replayed(made, chosen)
    assert isinstance(found, ThreadReplay)
    assert reproduction(found).residual_ns == 0
    return found


def test_the_path_is_the_step() -> None:
    assert path_us(replay(on_cpu(), 2)) == {
        "host_other": 350,
        "input": 300,
        "forward": 200,
        "optimizer": 100,
        "garbage_collection": 50,
    }


def test_what_is_not_done_is_saved() -> None:
    found = replay(on_cpu())
    assert saving_us(found, "input") == 300
    assert saving_us(found, "garbage_collection") == 50
    assert saving_us(found, "host_other") == 350


def test_an_operator_twice_as_fast_saves_half_of_its_own_time() -> None:
    """Of aten::linear the 50 us around aten::mm are its own."""
    found = replay(on_cpu())
    assert saving_us(found, faster_family("aten::mm")) == 75
    assert saving_us(found, faster_family("aten::linear")) == 25
    assert saving_us(found, faster_family("aten::conv2d")) == 0


def test_a_stretch_gone() -> None:
    """From 100 us before the second step to 100 us into it; the first event is at 1000."""
    assert saving_us(replay(on_cpu()), without_gap(900 * US, 1100 * US)) == pytest.approx(200 / 3)


def test_communication_hidden_has_to_fit() -> None:
    """600 us of all-reduce behind 400 us of operators: 600 are left."""
    made = Kineto()
    for number in (1, 2):
        at = 1000 * number
        made.step(number, at, 1000)
        made.op("aten::mm", at, 400)
        made.op("c10d::allreduce_", at + 400, 600)
    assert saving_us(replay(made), hidden("communication")) == 400


def test_bounds_and_questions() -> None:
    found = replay(on_cpu())
    known = bounds(found)
    assert known is not None
    assert known["input"] == 300 * US
    assert known["kernel_gap"] is None
    assert {each.name for each in scenarios(found)} == {
        "input",
        "garbage_collection",
        "host_other",
        "family:aten::mm",
        "family:aten::linear",
        "family:Optimizer.step#SGD.step",
    }
    assert bounds(found, {"input"})["input"] is None  # type: ignore[index]
