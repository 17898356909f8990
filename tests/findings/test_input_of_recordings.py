"""WB101 where steps are few or unmarked: what the recording shows is told, as a note."""

from pathlib import Path

from tests.findings.loops import Loop, fired, of
from workbench.run.run import Run


def waiting(folder: Path, *, batches: int, wait: float = 500, gpu: bool = True) -> Run:
    """Every millisecond a batch that takes ``wait`` µs to come, then 450 µs of work on it."""
    loop = Loop(gpu=gpu)
    for at in range(0, 1000 * batches, 1000):
        loop.trace.loader(at, wait)
        loop.trace.op("aten::mm", at + wait, 950 - wait)
        if gpu:
            loop.launch("gemm", call=(at + wait + 2, 5), kernel=(at + wait + 10, 940 - wait))
    return loop.run(folder)


def test_waits_in_a_trace_without_steps_are_told_of_the_recording(tmp_path: Path) -> None:
    """10 batches: 10 x 500 of the 9950 µs are waits; 502 µs of them lie before the first kernel."""
    finding = fired(waiting(tmp_path, batches=10), "WB101")
    assert finding.severity == "info"
    assert "of the recording" in finding.title
    assert 0.45 < (finding.share_of_window or 0) <= 5000 / 9950
    assert finding.saving_ns_per_step_at_most is None, "nobody knows what a step is"


def test_so_are_they_on_a_processor(tmp_path: Path) -> None:
    finding = fired(waiting(tmp_path, batches=10, gpu=False), "WB101")
    assert finding.share_of_window == 5000 / 9950
    assert finding.device is None


def test_a_single_wait_may_be_the_start_of_the_loader(tmp_path: Path) -> None:
    assert of(waiting(tmp_path, batches=1), "WB101") is None


def test_short_waits_are_silent(tmp_path: Path) -> None:
    """20 of 1000 µs."""
    assert of(waiting(tmp_path, batches=10, wait=20), "WB101") is None
