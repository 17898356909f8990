"""WB210, WB211 and WB903: what stops a loop from outside: collections, loading, the profiler."""

from pathlib import Path

import pytest

from tests.findings.loops import Loop, fired, looped, of
from workbench.findings.finding import Facts
from workbench.findings.garbage import garbage

MS = 1_000_000


def body(loop: Loop, at: float) -> None:
    """A kernel from 12 to 800; the host is free from 20 on."""
    loop.trace.op("aten::mm", at, 20)
    loop.launch("gemm", call=(at + 5, 5), kernel=(at + 12, 788))


def test_collections_that_stop_the_device_are_told(tmp_path: Path) -> None:
    """Idle from 800 to 1012, of which the collection takes 820 to 1000."""

    def collecting(loop: Loop, at: float) -> None:
        body(loop, at)
        loop.trace.range("workbench.gc", at + 820, 180)

    finding = fired(looped(collecting, 1000).run(tmp_path), "WB210")
    assert finding.share_of_window == pytest.approx(0.18)
    assert "gc.freeze()" in finding.advice


def test_collections_beside_a_busy_device_are_silent(tmp_path: Path) -> None:
    def collecting(loop: Loop, at: float) -> None:
        body(loop, at)
        loop.trace.range("workbench.gc", at + 300, 180)

    assert of(looped(collecting, 1000).run(tmp_path), "WB210") is None


@pytest.mark.parametrize(("ms", "fires"), [(3, True), (2, False)])
def test_on_the_cpu_the_steps_of_record_tell(ms: int, fires: bool) -> None:
    """20 steps of 5 ms: 2 % of 100 ms is tolerated."""
    told = {"collections": [40, 4, 2], "ns": [0, 0, ms * MS]}
    finding = garbage(Facts(step_ns=(5 * MS,) * 20, garbage_collection=told))
    assert (finding is not None) == fires


def loading(*steps: int) -> Loop:
    """A module is loaded from 830 to 1000 in the given steps."""

    def load(loop: Loop, at: float) -> None:
        body(loop, at)
        if at / 1000 in steps:
            loop.trace.runtime("cuModuleLoadData", at + 830, 160, correlation=90_000 + int(at))

    return looped(load, 1000)


def test_kernels_that_load_in_steady_steps_are_told(tmp_path: Path) -> None:
    """160 µs in each of 9 steps; those that end a step time are launched one step later."""
    finding = fired(loading(*range(5, 14)).run(tmp_path), "WB211")
    assert "9 of 21 steps" in finding.title
    assert finding.share_of_window == pytest.approx(9 * 160 / 21_000)
    assert "CUDA_MODULE_LOADING" in finding.advice


@pytest.mark.parametrize("steps", [(0,), (7,)], ids=["first use", "one late first use"])
def test_first_uses_claim_nothing(tmp_path: Path, steps: tuple[int, ...]) -> None:
    assert of(loading(*steps).run(tmp_path), "WB211") is None


def test_the_profilers_own_work_is_a_note_and_no_verdict(tmp_path: Path) -> None:
    """100 of 1000 µs a step."""

    def flushing(loop: Loop, at: float) -> None:
        body(loop, at)
        loop.trace.event("Activity Buffer Request", "overhead", at + 850, 100)

    run = looped(flushing, 1000).run(tmp_path)
    finding = fired(run, "WB903")
    assert finding.severity == "info"
    assert finding.share_of_window == pytest.approx(0.1)
    assert "profiler itself" not in repr(run).splitlines()[1]
    assert of(looped(body, 1000).run(tmp_path), "WB903") is None
