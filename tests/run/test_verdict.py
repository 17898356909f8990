"""The sentence that opens a page: a verdict only where something was measured and holds."""

from pathlib import Path

import pytest

import workbench as wb
from tests.kineto import Kineto
from workbench.errors import RunError
from workbench.pages.findings import NONE
from workbench.run.run import Run
from workbench.run.verdict import verdict
from workbench.run.view import view


def opened(trace: Kineto, folder: Path) -> Run:
    return wb.open(trace.write(folder / "t.json"))


def steps_with_kernels(*, kernel_us: float, call_at: float = 10) -> Kineto:
    """Three steps of 100 µs, each one operator with one launch and one kernel right behind it."""
    trace = Kineto(gpu=True)
    for number in range(3):
        start = 1000 + 100 * number
        trace.step(number, start, 100)
        trace.op("aten::relu", start, 100)
        trace.launched(
            "vectorized_elementwise_kernel",
            call=(start + call_at, 4),
            kernel=(start + call_at + 5, kernel_us),
            correlation=number + 1,
        )
    return trace


def test_no_rule_that_fires_is_no_proof_that_nothing_can_be_gained(tmp_path: Path) -> None:
    """Two steps of 100 µs have a time; each is 20 µs of work and 80 idle."""
    said = verdict(opened(steps_with_kernels(kernel_us=20), tmp_path))
    assert "GPU 0 (NVIDIA A100-SXM4-40GB) waits 80 % of the step" in said
    assert "No bottleneck" not in said


def test_work_that_was_lost_leaves_the_times_open(tmp_path: Path) -> None:
    """5 of 8 launches have no kernel."""
    trace = steps_with_kernels(kernel_us=20)
    for number in range(5):
        trace.runtime("cudaLaunchKernel", 1040 + 5 * number, 3, correlation=50 + number)
    run = opened(trace, tmp_path)
    assert verdict(run).startswith("Cannot tell what limits this program")
    assert run.figure("breakdown").title.startswith("Cannot tell how busy GPU 0")
    assert run.figure("idle").title.startswith("Cannot tell how long GPU 0")


def test_a_launch_that_took_half_a_second_was_work_that_the_trace_lacks(tmp_path: Path) -> None:
    """A kernel starts 463 ms after its launch returned: the device was busy, not 98 % idle."""
    trace = Kineto(gpu=True)
    trace.launched("first", call=(0, 4), kernel=(10, 100), correlation=1)
    trace.launched("second", call=(20, 4), kernel=(463_000, 100), correlation=2)
    run = opened(trace, tmp_path)
    assert not run.trust.ok
    for name in ("breakdown", "idle"):
        assert run.figure(name).title.startswith("Cannot tell how")


def test_a_file_without_steps_operators_and_kernels_gets_no_verdict(tmp_path: Path) -> None:
    trace = Kineto()
    trace.event("something", "custom", 0, 10)
    assert verdict(opened(trace, tmp_path)).startswith("Cannot tell what limits this program")


def test_a_loop_on_the_cpu_of_a_machine_with_a_gpu_needs_no_kernels(tmp_path: Path) -> None:
    from workbench.run.reading import rank_of

    trace = Kineto(gpu=True)
    trace.step(0, 0, 100)
    trace.op("aten::mm", 10, 80)
    path = trace.write(tmp_path / "t.json")
    assert rank_of(path, on_cpu=True).trust.ok
    assert not rank_of(path).trust.ok
    trace.runtime("cudaLaunchKernel", 12, 3, correlation=1)
    assert not rank_of(trace.write(tmp_path / "launched.json"), on_cpu=True).trust.ok


def test_wait_and_transfer_are_one_part_where_they_were_not_told_apart(tmp_path: Path) -> None:
    trace = steps_with_kernels(kernel_us=20)
    trace.launched("ncclDevKernel_AllReduce", call=(1140, 4), kernel=(1145, 30), correlation=9)
    shown = dict(view(opened(trace, tmp_path)).breakdowns[0].parts_ns)
    assert shown["exposed_communication"] == 30_000
    assert not {"exposed_communication_wait", "exposed_communication_transfer"} & set(shown)


def job(folder: Path, *, ranks: tuple[int, ...], world: int, slow: int = 60) -> Run:
    """Ranks whose kernels take 20 µs, the last one's ``slow``."""
    for rank in ranks:
        trace = steps_with_kernels(kernel_us=slow if rank == ranks[-1] else 20)
        trace.header["distributedInfo"] = {"rank": rank, "world_size": world, "backend": "nccl"}
        trace.write(folder / f"rank{rank}.json")
    return wb.open(folder)


def test_every_rank_has_its_own_parts_and_charts(tmp_path: Path) -> None:
    """Two of the three steps have a time: twice 20 and twice 60 µs are work."""
    run = job(tmp_path, ranks=(0, 1), world=2)
    shown = {each.label[:6]: each.parts_ns["compute"] for each in view(run).breakdowns}
    assert shown == {"Rank 0": 40_000, "Rank 1": 120_000}
    assert "Rank 1, GPU 0" in repr(run)
    for name in ("breakdown", "steps", "kernels", "operators", "idle", "input"):
        assert run.figure(name).title.startswith("Rank 0: ")
        assert run.figure(name, rank=1).title.startswith("Rank 1: ")
    with pytest.raises(RunError, match="has no rank 7: it has 0, 1"):
        run.figure("steps", rank=7)


def test_without_a_finding_the_verdict_is_of_all_ranks(tmp_path: Path) -> None:
    """Steps of 100 µs; kernels of 91 µs on rank 0 and 97 on rank 1: 94 % on the mean device."""
    for rank, kernel_us in enumerate((91, 97)):
        trace = steps_with_kernels(kernel_us=kernel_us, call_at=0)
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        trace.write(tmp_path / f"rank{rank}.json")
    said = verdict(wb.open(tmp_path))
    assert said.startswith("The mean device of 2 ranks computes 94 % of the step")
    assert "(compute from 91 % to 97 %)" in said
    assert "Under the profiler a step takes 100 µs (median)." in said


def test_tables_of_all_ranks_leave_those_of_each_as_they_were(tmp_path: Path) -> None:
    run = job(tmp_path, ranks=(0, 1), world=2)
    alone = list(run.ranks[0].kernels.columns)
    assert list(run.kernels["rank"]) == [0, 1]
    assert list(run.ranks[0].kernels.columns) == alone


def test_ranks_without_a_file_are_said_once_and_void_no_number(tmp_path: Path) -> None:
    run = job(tmp_path, ranks=(1, 2), world=4)
    assert "2 of 4 ranks have no file (ranks 0, 3)" in run.notes[0]
    assert repr(run).count("2 of 4 ranks have no file") == 1
    for rank in run.summary["ranks"]:
        assert rank["trust"]["ok"]
        # They share no collective, so nothing ties their clocks either.
        assert [v["code"] for v in rank["trust"]["violations"]] == ["missing_ranks", "clock_bases"]
    assert not run.findings


def test_a_rank_that_no_file_tells_is_missing_and_not_minus_one(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        steps_with_kernels(kernel_us=20).write(tmp_path / name)
    run = wb.open(tmp_path)
    assert run.kernels["rank"].isna().all()
    assert run.figure("steps").title.startswith("a.json: ")


def test_every_table_that_is_none_has_its_reason(tmp_path: Path) -> None:
    """A device works, but nothing of it was launched in the one whole step."""
    trace = Kineto(gpu=True)
    trace.step(0, 0, 100)
    trace.launched("late", call=(150, 4), kernel=(160, 20), correlation=1)
    run = opened(trace, tmp_path)
    missing = run.summary.not_measured
    for name in ("idle", "operators", "input", "communication"):
        assert getattr(run, name) is None
        assert missing[name]
    assert run.summary["ranks"][0]["operators"] is None
    assert "kernels" not in missing


@pytest.mark.parametrize(("longest_us", "named"), [(60, True), (25, False)])
def test_on_the_cpu_the_operator_that_takes_most_is_named(
    longest_us: int, named: bool, tmp_path: Path
) -> None:
    """Of 100 us in operators one takes 60: it is where to look. 25 beside three others is not."""
    trace = Kineto()
    trace.op("aten::convolution", 0, longest_us)
    for each in range(3):
        rest = (100 - longest_us) / 3
        trace.op(f"aten::other_{each}", longest_us + rest * each, rest)
    said = verdict(opened(trace, tmp_path))
    assert ("aten::convolution takes 60 % of the operators' time" in said) == named
    assert ("takes" in said) == named


def test_that_no_rule_fires_is_said_once(tmp_path: Path) -> None:
    """80 % of a step of 100 µs is idle, but three steps are few and one launch is no bound."""
    run = opened(steps_with_kernels(kernel_us=20), tmp_path)
    assert not run.findings, "otherwise this asks nothing"
    for page in run._repr_mimebundle_().values():
        assert page.count("No rule ") == 1
        assert NONE not in page
    assert NONE in repr(run.part("findings")), "shown alone, it must say something"


def test_an_operator_leads_in_the_steps_that_count_not_in_warm_up(tmp_path: Path) -> None:
    """The first step compiles for 900 us and expands for 500: steps after it multiply."""
    trace = Kineto()
    trace.step(0, 0, 2000)
    trace.op("entire_frame_compile (dynamo_timed)", 0, 900)
    trace.op("aten::expand", 1000, 500)
    for number in range(1, 6):
        at = 1900 + 100 * number
        trace.step(number, at, 100)
        trace.op("aten::mm", at, 60)
        trace.op("aten::relu", at + 60, 20)
    said = verdict(opened(trace, tmp_path))
    assert "aten::mm takes 75 % of the operators' time" in said, said


def test_where_no_operator_leads_the_families_are_named(tmp_path: Path) -> None:
    """Of 100 us no operator takes 30: products take 50 together, activations 40."""
    trace = Kineto()
    for name, start, took in (
        ("aten::mm", 0, 25),
        ("aten::addmm", 25, 25),
        ("aten::relu", 50, 20),
        ("aten::gelu", 70, 20),
        ("aten::view", 90, 10),
    ):
        trace.op(name, start, took)
    run = opened(trace, tmp_path)
    assert "of the operators' time gemm 50 %, elementwise 40 %" in verdict(run)
    rows = run.summary["ranks"][0]["operator_families"]
    assert [(row["family"], row["host_self_us"]) for row in rows] == [
        *(("gemm", 50), ("elementwise", 40), ("view", 10))
    ]


def test_a_note_is_no_verdict(tmp_path: Path) -> None:
    """Kernels load for 6 of 8 ms; that gradients are filled with zeros for 0.2 limits nothing."""
    trace = Kineto(gpu=True)
    trace.step(0, 0, 8_000)
    trace.op("Optimizer.zero_grad#SGD.zero_grad", 0, 260)
    for number in range(8):
        trace.op("aten::zero_", 30 * number, 20)
        trace.launched(
            "fill", call=(30 * number + 5, 4), kernel=(30 * number + 10, 5), correlation=number + 1
        )
    trace.op("aten::mm", 300, 7_600)
    trace.launched("gemm", call=(310, 6_000), kernel=(6_400, 1_000), correlation=90)
    run = opened(trace, tmp_path)
    assert {f.severity for f in run.findings} == {"info"}
    said = verdict(run)
    assert said.startswith("GPU 0 (NVIDIA A100-SXM4-40GB) waits"), said
    assert "mostly for kernels to load" in said


def test_idle_time_of_unknown_cause_is_said_to_lie_behind_the_work(tmp_path: Path) -> None:
    """A kernel of 100 us, and 900 us in which the host writes a file: nobody waits for them."""
    trace = Kineto(gpu=True)
    trace.launched("gemm", call=(0, 4), kernel=(10, 100), correlation=1)
    trace.op("aten::relu", 1_000, 10)
    said = verdict(opened(trace, tmp_path))
    assert "idle time of unknown cause: 900 µs behind its last recorded work" in said


def test_work_that_began_late_is_doubted_before_any_step_too(tmp_path: Path) -> None:
    """Without steps the window begins with the host; a copy waits 149 ms for its turn."""
    trace = Kineto(gpu=True)
    trace.launched("copy", call=(2_000, 20), kernel=(151_000, 5), correlation=1)
    trace.launched("gemm", call=(151_020, 20), kernel=(151_060, 100_000), correlation=2)
    run = opened(trace, tmp_path)
    assert "unrecorded_device_work" in {v.code for v in run.trust.violations}
    assert verdict(run).startswith("Cannot tell what limits")


def test_one_pause_among_the_steps_is_told_apart_from_them(tmp_path: Path) -> None:
    """Eight steps of 1 ms, 0.3 of it work, and 10 s between two of them: a validation, say.

    Findings speak of the other steps, which idle 70 % of 1 ms.
    """
    trace = Kineto(gpu=True)
    for number in range(8):
        at = 1_000 * number + (10_000_000 if number > 3 else 0)
        trace.step(number + 1, at, 1_000)
        trace.op("aten::relu", at + 600, 50)
        call = at + 610, 5
        trace.launched("relu", call=call, kernel=(at + 620, 300), correlation=number + 1)
    run = opened(trace, tmp_path)
    finding = next(f for f in run.findings if f.code == "WB209")
    assert finding.share_of_window == pytest.approx(0.7, abs=0.03)
    assert finding.saving_ns_per_step_at_most == pytest.approx(0.7e6, rel=0.05)
    assert "(median; 1.43 s on average, since one takes 10.0 s)" in verdict(run)
