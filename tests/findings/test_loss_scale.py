"""WB305: are steps skipped because fp16 gradients overflow, and is that more than a beginning?"""

from pathlib import Path
from typing import Any

import pytest

from tests.findings.facts import MS, found
from tests.findings.loops import Loop, fired, looped, of
from workbench.findings import Facts

CHECK = "aten::_amp_foreach_non_finite_check_and_unscale_"


def recorded(steps: int, skipped_at: list[int], scales: list[list[float]], **rest: Any) -> Facts:
    record = {"steps": steps, "scales": scales, "skipped_at": skipped_at, "growth_interval": 2000}
    return Facts(loss_scale=record, step_ns=(10 * MS,) * 40, **rest)


def test_more_than_one_step_in_a_hundred_after_the_hundredth() -> None:
    """Of the 400 steps after the first hundred 8 were skipped: 2 %, of 10 ms each."""
    at = [0, 1, 2, *range(120, 500, 50)]
    assert len([step for step in at if step >= 100]) == 8
    finding = found(recorded(500, at, [[0, 1024.0]]), "WB305")
    assert finding is not None
    assert finding.verdict == "yes"
    assert finding.severity == "warning"
    assert "2.0 % of those after the first 100" in finding.title
    assert finding.saving_ns_per_step_at_most == pytest.approx(0.02 * 10 * MS)
    assert finding.setting == {"precision": "bf16"}


@pytest.mark.parametrize(
    ("steps", "skipped_at"),
    [(500, [0, 1, 2, 3]), (500, [0, 1, 300]), (500, []), (60, [])],
    ids=["the scale found its place", "one growth that overflowed", "none", "none in a short run"],
)
def test_a_healthy_scale_is_silent(steps: int, skipped_at: list[int]) -> None:
    assert found(recorded(steps, skipped_at, [[0, 65536.0]]), "WB305") is None


def test_a_short_run_that_is_still_seeking_cannot_tell() -> None:
    finding = found(recorded(60, [0, 1, 2], [[0, 32768.0], [2, 8192.0]]), "WB305")
    assert finding is not None
    assert finding.verdict == "cannot_tell"
    assert finding.severity == "info"


def test_steps_that_are_all_skipped_train_nothing() -> None:
    """A NaN loss: the scale halves 30 times, from 65536 to far below 1."""
    scales = [[step, 65536.0 / 2 ** (step + 1)] for step in range(30)]
    finding = found(recorded(30, list(range(30)), scales), "WB305")
    assert finding is not None
    assert finding.severity == "critical"
    assert finding.share_of_window == 1.0
    assert "the scale only fell" in finding.title
    assert "no matter of scale" in finding.advice


def test_a_scale_that_only_falls_for_two_growth_windows() -> None:
    """Over 6000 steps of a window of 2000 it fell three times and never grew."""
    scales = [[0, 4096.0], [1500, 2048.0], [3000, 1024.0], [5900, 512.0]]
    finding = found(recorded(6000, [1500, 3000, 5900], scales), "WB305")
    assert finding is not None
    assert "the scale only fell, to 512" in finding.title


def test_a_scale_that_comes_and_goes_is_healthy() -> None:
    scales = [[0, 4096.0], [1500, 2048.0], [3500, 4096.0], [5500, 8192.0], [5900, 4096.0]]
    assert found(recorded(6000, [1500, 5900], scales), "WB305") is None


def test_bf16_is_not_advised_where_it_is_imitated() -> None:
    imitated = {"dtype": "bf16", "supported": True, "native": False, "matmul_ratio": 40.0}
    facts = recorded(30, list(range(30)), [[0, 32768.0]], dtypes=(imitated,))
    finding = found(facts, "WB305")
    assert finding is not None
    assert finding.setting is None


def scaled(skips: int, *, optimizer: str = "Optimizer.step#SGD.step", fused: bool = False) -> Loop:
    """22 steps that check their gradients; the last ``skips`` of them run no optimizer."""

    def body(loop: Loop, at: float) -> None:
        loop.trace.op(CHECK, at + 500, 20)
        if at < (22 - skips) * 1000 and optimizer:
            loop.trace.range(optimizer, at + 600, 100)
        if fused:
            loop.trace.op("aten::_fused_sgd_", at + 610, 20)

    return looped(body, 1000, gpu=False)


def test_a_trace_from_elsewhere_shows_steps_without_an_optimizer(tmp_path: Path) -> None:
    finding = fired(scaled(4).run(tmp_path), "WB305")
    assert finding.verdict == "cannot_tell", "22 steps may be the first ones"
    assert "4 of 22 steps were skipped" in finding.title


@pytest.mark.parametrize(
    "loop",
    [scaled(0), scaled(22, optimizer=""), scaled(4, fused=True)],
    ids=["none skipped", "an optimizer that marks nothing", "a fused one decides itself"],
)
def test_a_trace_that_shows_nothing_is_silent(tmp_path: Path, loop: Loop) -> None:
    assert of(loop.run(tmp_path), "WB305") is None


def test_a_loop_without_scaling_is_silent(tmp_path: Path) -> None:
    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::mm", at + 500, 20)

    assert of(looped(body, 1000, gpu=False).run(tmp_path), "WB305") is None
