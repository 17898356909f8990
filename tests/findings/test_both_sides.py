"""Rules of ranks and of measurement: each on a recording that fires it, and one that does not."""

from pathlib import Path

import pytest

import workbench as wb
from tests.analysis.jobs import ALL_REDUCE, job_trace
from tests.findings.loops import fired, of
from tests.kineto import Kineto
from tests.run.test_compare import measured, with_times
from workbench.run.run import Run

LONGER = 150


def job(folder: Path, *, hidden: bool) -> Run:
    """Two ranks compute for 400 us, then move data for 250, hidden by as much compute or not."""
    for rank in (0, 1):
        made = job_trace(rank, (400, 400))
        for event in [e for e in made.events if e["name"] == ALL_REDUCE]:
            event["dur"] += LONGER
            if hidden:
                number = event["args"]["correlation"] + 1
                made.launched(
                    "gemm",
                    call=(event["ts"] - 5, 3),
                    kernel=(event["ts"], event["dur"]),
                    correlation=number,
                )
        made.write(folder / f"rank{rank}.json")
    return wb.open(folder)


def test_transfer_that_nothing_hides_is_told_with_its_share(tmp_path: Path) -> None:
    """The window runs from the first kernel at 100 to 2750: 750 of 2650 us are transfer alone."""
    finding = fired(job(tmp_path, hidden=False), "WB401")
    assert (finding.verdict, finding.severity) == ("yes", "warning")
    assert finding.share_of_window == pytest.approx(750 / 2650)
    assert finding.evidence["exposed_wait_us"] == 0


def test_transfer_beside_as_much_compute_is_silent(tmp_path: Path) -> None:
    run = job(tmp_path, hidden=True)
    table = run.communication
    assert table is not None
    assert table["transfer_ns"].tolist() == [750_000] * 2, "it moves as much"
    assert of(run, "WB401") is None


def test_a_rank_that_waits_is_blamed_on_the_late_one_and_not_on_the_network(
    tmp_path: Path,
) -> None:
    """Rank 1 computes 500 us longer; three transfers of 50 us are no tenth of 2850."""
    for rank in (0, 1):
        made = job_trace(rank, (300, 800))
        for event in [e for e in made.events if e["name"] == ALL_REDUCE]:
            event["dur"] -= 50
        made.write(tmp_path / f"rank{rank}.json")
    run = wb.open(tmp_path)
    finding = fired(run, "WB402")
    assert finding.rank == 1
    assert finding.evidence["others_wait_us_per_step"] == pytest.approx(500)
    assert of(run, "WB401") is None


def loop(*, shift: float = 0, lost: int = 0) -> Kineto:
    """Eight kernels; the device's clock is behind by ``shift``, and so many have no record."""
    made = Kineto(gpu=True)
    for number in range(8):
        at = 1000 + 100 * number
        made.step(number, at, 100)
        made.op("aten::mm", at, 60)
        made.runtime("cudaLaunchKernel", at + 10, 5, correlation=number + 1)
        if number >= lost:
            made.kernel("gemm", at + 20 - shift, 50, correlation=number + 1)
    return made


def test_launches_whose_work_is_missing_void_the_profile(tmp_path: Path) -> None:
    finding = fired(wb.open(loop(lost=4).write(tmp_path / "t.json")), "WB901")
    assert finding.evidence["violations"] == {"missing_kernel": 4}


def test_work_before_its_launch_by_a_second_voids_what_compares_the_clocks(tmp_path: Path) -> None:
    finding = fired(wb.open(loop(shift=1_000_000).write(tmp_path / "t.json")), "WB901")
    assert "clock" in finding.evidence["violations"]
    assert "causes" in finding.evidence["voids"]


@pytest.mark.parametrize("shift", [0, 40], ids=["whole", "a constant offset"])
def test_a_whole_profile_is_trusted_also_with_a_shifted_clock(tmp_path: Path, shift: float) -> None:
    assert of(wb.open(loop(shift=shift).write(tmp_path / "t.json")), "WB901") is None


def test_halves_that_differ_by_a_fifth_are_a_noisy_machine(tmp_path: Path) -> None:
    """40 steps of 10 ms, then 40 of 12: the second half takes 20 % longer."""
    run = with_times(measured(tmp_path, "a", step_ms=10), [10.0] * 40 + [12.0] * 40, [40, 40])
    finding = fired(run, "WB902")
    assert finding.severity == "warning"
    assert finding.evidence["block_medians_us"] == [10_000, 12_000]


def test_halves_that_agree_are_a_quiet_machine(tmp_path: Path) -> None:
    """Steps of 9.9 and 10.1 ms in turn: both halves have the same median."""
    run = with_times(measured(tmp_path, "a", step_ms=10), [9.9, 10.1] * 40, [40, 40])
    assert of(run, "WB902") is None
