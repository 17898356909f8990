"""WB502: steps that ask the driver for device memory, every one of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.findings.loops import STEPS, Loop, fired, looped, of

MS = 1_000_000


def asking(
    name: str, *, in_steps: Callable[[int], bool], gives_back: bool = False, steps: int = STEPS
) -> Loop:
    """Steps of 10 ms: memory is asked for from 1 to 4 ms, then a kernel runs from 4.1 to 9."""

    def body(loop: Loop, at: float) -> None:
        loop.launch("first", call=(at, 10), kernel=(at + 20, 480))
        if in_steps(round(at / 10_000)):
            for part in range(3):
                loop.trace.runtime(name, at + 1000 + 1000 * part, 1000, correlation=0)
            if gives_back:
                loop.trace.runtime("cudaFree", at + 500, 500, correlation=0)
        loop.launch("gemm", call=(at + 4000, 10), kernel=(at + 4100, 4900))

    return looped(body, 10_000, steps=steps)


@pytest.mark.parametrize("name", ["cudaMalloc", "hipMalloc", "cuMemCreate"])
def test_memory_asked_for_in_every_step_is_told_with_its_idle_time(
    tmp_path: Path, name: str
) -> None:
    """Three calls of 1 ms each, and the device has nothing to do meanwhile: 3 of 10 ms."""
    finding = fired(asking(name, in_steps=lambda _: True).run(tmp_path), "WB502")
    assert finding.evidence["allocations_per_step"] == 3
    assert finding.evidence["host_us_per_step"] == 3000
    assert finding.evidence["idle_us_per_step"] == pytest.approx(3000)
    assert finding.share_of_window == pytest.approx(0.3)
    assert finding.saving_ns_per_step_at_most == pytest.approx(3 * MS)
    assert finding.speedup_at_most == pytest.approx(10 / 7)
    assert finding.severity == "critical"
    assert "expandable_segments" in finding.advice


def test_blocks_that_a_step_gives_back_are_advised_to_be_kept(tmp_path: Path) -> None:
    """CudaFree takes another half millisecond of each step, in which the device is idle too."""
    run = asking("cudaMalloc", in_steps=lambda _: True, gives_back=True).run(tmp_path)
    finding = fired(run, "WB502")
    assert finding.evidence["releases_per_step"] == 1
    assert finding.share_of_window == pytest.approx(0.35)
    assert "empty_cache" in finding.advice


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("cudaMalloc", lambda step: step == 0),
        ("cudaMalloc", lambda step: step < 4),
        ("cudaMalloc", lambda step: step in {0, 9, 15}),
        ("cudaMallocAsync", lambda _: True),
        ("cudaMallocHost", lambda _: True),
    ],
    ids=["first use", "warm-up", "two late steps", "the driver's pool", "memory of the host"],
)
def test_what_is_no_churn_is_silent(
    tmp_path: Path, name: str, steps: Callable[[int], bool]
) -> None:
    assert of(asking(name, in_steps=steps).run(tmp_path), "WB502") is None


def test_a_recording_of_three_steps_may_be_of_a_cache_that_fills(tmp_path: Path) -> None:
    run = asking("cudaMalloc", in_steps=lambda _: True, steps=3).run(tmp_path)
    assert of(run, "WB502") is None


def test_calls_behind_a_full_queue_cost_nothing_and_are_a_note(tmp_path: Path) -> None:
    """The same calls while a kernel of 9.4 ms runs: the device never waits for them."""

    def body(loop: Loop, at: float) -> None:
        loop.launch("gemm", call=(at, 10), kernel=(at + 20, 9400))
        loop.trace.runtime("cudaMalloc", at + 1000, 3000, correlation=0)
        loop.launch("relu", call=(at + 5000, 10), kernel=(at + 9430, 560))

    finding = fired(looped(body, 10_000).run(tmp_path), "WB502")
    assert (finding.severity, finding.share_of_window) == ("info", 0)
    assert finding.saving_ns_per_step_at_most == 0
