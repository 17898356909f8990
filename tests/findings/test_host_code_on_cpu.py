"""WB209 on a loop whose work runs on the CPU: most of a step is code outside any operator."""

from pathlib import Path

import pytest

from tests.findings.loops import Loop, fired, looped, of

MS = 1_000_000
STEP = 10_000


def spending(outside: float, *, stacks: bool = False, gpu: bool = False) -> Loop:
    """Steps of 10 ms: so many microseconds of plain code, then one product."""

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::slice", at, 100)
        if stacks:
            number = round(at) * 10
            loop.trace.python("train.py(7): step", at, STEP, ident=number, parent=None)
            loop.trace.python(
                "train.py(3): augment", at + 100, outside, ident=number + 1, parent=number
            )
            loop.trace.python(
                "/lib/python3.11/random.py(1): random",
                *(at + 100, outside),
                ident=number + 2,
                parent=number + 1,
            )
        loop.trace.op("aten::mm", at + 100 + outside, STEP - 100 - outside)

    return looped(body, STEP, gpu=gpu)


def test_a_loop_that_is_mostly_host_code_is_told_with_the_records_around(tmp_path: Path) -> None:
    """6 of 10 ms lie between the slice and the product: at most 2.5 times as fast without."""
    finding = fired(spending(6000).run(tmp_path), "WB209")
    assert finding.share_of_window == pytest.approx(0.6)
    assert finding.saving_ns_per_step_at_most == pytest.approx(6 * MS)
    assert finding.speedup_at_most == pytest.approx(2.5)
    assert "between aten::slice and aten::mm" in finding.title
    assert (finding.severity, finding.device) == ("warning", None)
    assert "with_stack=True" in finding.advice, "a trace from elsewhere: torch's own word"


def test_where_stacks_were_recorded_the_users_own_line_is_named(tmp_path: Path) -> None:
    """The library's frame is not the user's: the line that called it is."""
    finding = fired(spending(6000, stacks=True).run(tmp_path), "WB209")
    assert "in train.py(3): augment" in finding.title
    assert "stacks=True" not in finding.advice


def test_the_share_of_small_models_is_silent(tmp_path: Path) -> None:
    assert of(spending(800).run(tmp_path), "WB209") is None
    assert of(spending(4900).run(tmp_path), "WB209") is None


def test_waiting_for_the_thread_that_runs_backward_is_no_host_code(tmp_path: Path) -> None:
    """5 of the 6 ms between two operators are nodes of the engine on its own thread."""

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::ones_like", at, 1000)
        name = "autograd::engine::evaluate_function: MulBackward0"
        loop.trace.op(name, at + 1500, 5000, tid=101)
        loop.trace.op("aten::mm", at + 7000, 3000)

    assert of(looped(body, STEP, gpu=False).run(tmp_path), "WB209") is None


def test_a_device_of_which_nothing_was_recorded_leaves_the_loop_unjudged(tmp_path: Path) -> None:
    assert of(spending(6000, gpu=True).run(tmp_path), "WB209") is None
