"""What people met with trace tools, one test a scenario of category 9; right values by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kineto import HOST, Kineto
from workbench.analysis.communication_names import is_communication
from workbench.analysis.device_time import device_time
from workbench.analysis.families import OTHER, family
from workbench.analysis.intervals import total, union
from workbench.analysis.kernels import kernel_table
from workbench.analysis.operators import operator_table
from workbench.analysis.ranges import Range
from workbench.run.job import Job
from workbench.run.rank import RankAnalysis
from workbench.run.reading import rank_of, ranks_of
from workbench.trace import find_ranks
from workbench.trace.split import split_ranks
from workbench.trace.table import Kind, Violation

US = 1_000
STEP = 100
"""Microseconds of a step below: 10 input, 30 in a matmul, 20 in the optimizer."""


def loop(steps: int = 6, *, marked: bool = True, start: int = 0, **header: Any) -> Kineto:
    """A loop whose kernels take 40 + 10 us a step, launched at 15 and 62 us of it."""
    made = Kineto(gpu=True, **header)
    for number in range(steps):
        at = start + STEP * number
        if marked:
            made.step(number, at, STEP)
        made.loader(at, 10)
        made.op("aten::mm", at + 12, 30)
        made.launched("gemm", call=(at + 15, 5), kernel=(at + 25, 40), correlation=2 * number + 1)
        made.range("Optimizer.step#SGD.step", at + 60, 20)
        made.launched("sgd", call=(at + 62, 5), kernel=(at + 70, 10), correlation=2 * number + 2)
    return made


def opened(made: Kineto, folder: Path, name: str = "trace.json") -> RankAnalysis:
    return rank_of(made.write(folder / name))


def told(rank: RankAnalysis) -> dict[str, Violation]:
    return {violation.code: violation for violation in rank.trust.violations}


def numbers(rank: RankAnalysis) -> dict[str, Any]:
    """What must be the same for a rank however its file was come by."""
    (window,) = rank.windows.values()
    assert rank.steps is not None
    assert window is not None
    return {
        "busy": rank.device_time[0].busy,
        "idle": rank.idle[0].by_cause,
        "window": window.length,
        "steps": rank.steps.time_ns.tolist(),
        "kernels": kernel_table(rank.trace, None)[["name", "calls", "total_ns"]]
        .to_numpy()
        .tolist(),
    }


def test_t01_a_trace_without_a_rank_is_one_process(tmp_path: Path) -> None:
    made = loop(3)
    assert "distributedInfo" not in made.header
    rank = opened(made, tmp_path)
    assert (rank.rank, rank.trace.world_size, rank.trust.ok) == (None, None, True)
    assert rank.steps is not None
    assert len(rank.steps) == 3
    (file,) = find_ranks(tmp_path)
    assert file.rank is None


def test_t02_without_step_ranges_the_window_is_everything(tmp_path: Path) -> None:
    rank = opened(loop(marked=False), tmp_path)
    assert rank.steps is None
    # From the first loader's start at 0 to the end of the last optimizer range, 580 us later.
    assert rank.windows[0] == Range(start=0, end=580 * US)
    assert rank.device_time[0].busy == 6 * 50 * US


def test_t02_steps_are_inferred_from_what_repeats_when_asked(tmp_path: Path) -> None:
    rank = opened(loop(marked=False), tmp_path)
    rank.infer_steps = True
    assert rank.steps is not None
    # Six ends of the optimizer's step bound five steps; a step ends when its last kernel does.
    assert (rank.steps.source, len(rank.steps)) == ("inferred", 5)
    assert rank.steps.host_ns.tolist() == [STEP * US] * 5
    assert rank.steps.time_ns.tolist() == [STEP * US] * 4


def test_t02_without_an_optimizer_waits_for_batches_repeat(tmp_path: Path) -> None:
    made = loop(4, marked=False)
    made.events = [e for e in made.events if not e["name"].startswith("Optimizer")]
    rank = opened(made, tmp_path)
    rank.infer_steps = True
    assert rank.steps is not None
    assert rank.steps.start.tolist() == [0, 100 * US, 200 * US]


def test_t02_what_does_not_repeat_is_no_step(tmp_path: Path) -> None:
    rank = opened(loop(2, marked=False), tmp_path)
    rank.infer_steps = True
    assert rank.steps is None


def test_t02_of_two_optimizers_the_rarer_ends_the_step(tmp_path: Path) -> None:
    """A critic that is trained twice for each step of the generator."""
    made = Kineto()
    for at in range(0, 800, 100):
        made.range("Optimizer.step#Adam.step", at, 10)
        if at % 200:
            made.range("Optimizer.step#RMSprop.step", at + 50, 10)
    rank = opened(made, tmp_path)
    rank.infer_steps = True
    assert rank.steps is not None
    assert rank.steps.host_ns.tolist() == [200 * US] * 3


def test_t03_synchronization_records_are_not_work(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    made.kernel("gemm", 0, 10_000)
    made.kernel("Stream Sync", 10_000, 90_000, cat="cuda_sync")
    made.kernel("ProfilerStep#1", 0, 100_000, cat="gpu_user_annotation")
    trace = opened(made, tmp_path).trace
    # 10 of 100 ms, not 100 of 100.
    assert device_time(trace, 0, Range(start=0, end=100_000 * US)).busy == 10_000 * US


def test_t03_unknown_categories_are_listed_and_not_summed(tmp_path: Path) -> None:
    made = loop(3)
    for at in range(5):
        made.kernel("mystery", 10 * at, 5, cat="gpu_future_thing")
    rank = opened(made, tmp_path)
    assert "mystery" not in kernel_table(rank.trace, None)["name"].to_list()
    found = told(rank)["unknown_categories"]
    assert "gpu_future_thing (5)" in found.message
    assert (found.count, found.voids, rank.trust.ok) == (5, (), True)


def test_t06_overlaps_on_one_track_stay(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    made.launched("a", call=(0, 1), kernel=(10, 10), correlation=1)
    made.launched("b", call=(2, 1), kernel=(18, 7), correlation=2)
    rank = opened(made, tmp_path)
    # [10, 20) and [18, 25): 15 us busy, though the two last 17 us together.
    assert rank.device_time[0].busy == 15 * US
    table = kernel_table(rank.trace, None).set_index("name")["total_ns"]
    assert table.to_dict() == {"a": 10 * US, "b": 7 * US}
    assert told(rank)["stream_overlap"].count == 1


def test_t06_host_ranges_that_cross_by_rounding_are_still_nested(tmp_path: Path) -> None:
    made = Kineto()
    made.op("outer", 0, 100)
    made.op("inner", 50, 50.4)
    rank = opened(made, tmp_path)
    table = operator_table(rank.trace, rank.launches, None).set_index("name")
    # The child's time behind its parent's end is nobody's: 100 us in all, half of them its own.
    assert table["host_self_ns"].to_dict() == {"outer": 50 * US, "inner": 50_400}
    assert total(union(rank.trace.events.ts, rank.trace.events.end)) == 100_400


def test_t07_a_graph_launch_with_a_thousand_kernels(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    for step in range(3):
        at = 20_000 * step
        made.step(step, at, 20_000)
        made.runtime("cudaGraphLaunch", at + 10, 50, correlation=step + 1)
        for node in range(1000):
            name = f"kernel_{node % 4}"
            made.kernel(
                name,
                at + 100 + 15 * node,
                15,
                correlation=step + 1,
                grid=[1, 1, 1],
                **{"graph id": 7, "graph node id": node},
            )
    rank = opened(made, tmp_path)
    table = kernel_table(rank.trace, None).set_index("name")["calls"]
    assert table.to_dict() == {f"kernel_{i}": 750 for i in range(4)}
    assert rank.launch_statistics is not None
    assert rank.launch_statistics.per_step == 1
    launched = rank.trace.launch_configurations
    assert set(launched.graph.tolist()) == {7}
    assert sorted(set(launched.graph_node.tolist())) == list(range(1000))
    found = told(rank)["graph_replay"]
    assert (found.count, found.share) == (3, 1.0)
    assert "per-operator attribution is not available for 100%" in found.message
    assert rank.trust.ok


def test_t07_a_little_graph_is_not_told(tmp_path: Path) -> None:
    """10 us of 5,010 us are 0.2 % of the device time."""
    made = loop(100)
    made.runtime("cudaGraphLaunch", 9_990, 2, correlation=900)
    made.kernel("replayed", 10_000, 10, correlation=900)
    assert "graph_replay" not in told(opened(made, tmp_path))


RENAMED = (
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "communication"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
    ("ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)", "communication"),
    ("NCCLDEVKERNEL_ALLGATHER", "communication"),
    ("rcclGenericKernel", "communication"),
    ("hcom_allReduce_", "communication"),
    ("void vllm::cross_device_reduce_1stage<__half, 4>", "communication"),
    ("all-gather-start.3", "communication"),
    ("volta_sgemm_64x64_nn", "gemm"),
    ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "gemm"),
    ("Cijk_Alik_Bljk_BBS_BH_MT320x224x64_MI16x16x1", "gemm"),
    ("a_kernel_that_nobody_knows", OTHER),
)


@pytest.mark.parametrize(("name", "kind"), RENAMED)
def test_t08_names_old_and_new_of_every_vendor(name: str, kind: str) -> None:
    assert family(name) == kind
    assert is_communication(name) == (kind == "communication")


def test_t08_the_unclassified_share_is_visible(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    made.kernel("nvjet_tst_256x128", 0, 97)
    made.kernel("a_kernel_that_nobody_knows", 100, 3)
    table = kernel_table(opened(made, tmp_path).trace, None)
    assert table.loc[table["family"] == OTHER, "share"].tolist() == [pytest.approx(0.03)]


def test_t08_kernels_launched_by_newer_calls_are_no_orphans(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    for number, call in enumerate(("cuLaunchKernelEx", "cudaLaunchKernelExC", "hipExtLaunch")):
        made.event(call, "cuda_driver", 20 * number, 5, args={"correlation": number + 1})
        made.kernel("k", 20 * number + 8, 10, correlation=number + 1)
    rank = opened(made, tmp_path)
    assert "missing_launch" not in told(rank)
    assert (rank.launches.launch[rank.trace.events.rows(Kind.KERNEL)] >= 0).all()


@pytest.mark.parametrize("start", [0, 5_000_000_000_000])
def test_t09_records_without_times_are_counted(tmp_path: Path, start: int) -> None:
    """Half of the kernels have ts = dur = 0, in a trace from 0 and in one from the epoch."""
    made = loop(40, start=start)
    kernels = [event for event in made.events if event["cat"] == "kernel"]
    for event in kernels[40:]:
        event["ts"] = event["dur"] = 0
    rank = opened(made, tmp_path)
    found = told(rank)["zero_timestamps"]
    assert (found.count, found.share) == (40, 0.5)
    assert "Kernel totals are incomplete" in found.message
    assert not rank.trust.ok
    assert rank.voids("busy")
    assert int(rank.trace.events.end.max()) == 40 * STEP * US  # no axis from 1970 on
    assert kernel_table(rank.trace, None)["calls"].sum() == 40


def test_t09_a_trace_of_nothing_but_zeros(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    for _ in range(4):
        made.kernel("k", 0, 0)
    rank = opened(made, tmp_path)
    assert len(rank.trace.events) == 0
    assert told(rank)["zero_timestamps"].share == 1
    assert rank.device_time == {}


SKEW_US = 11_560_000


def test_t10_ranks_in_files_on_clocks_that_are_apart(tmp_path: Path) -> None:
    """Two copies, the second's clock 11.56 s ahead: each rank has the numbers of the original."""
    base = 1_700_000_000_000_000_000
    original = numbers(opened(loop(), tmp_path))
    for rank, ahead in enumerate((0, SKEW_US * US)):
        made = loop(base_ns=base + ahead)
        made.header["distributedInfo"] = {"rank": rank, "world_size": 2}
        for number in range(6):
            at = STEP * number
            made.launched(
                "ncclDevKernel_AllReduce",
                call=(at + 82, 2),
                kernel=(at + 85, 5),
                correlation=100 + number,
                stream=20,
            )
        folder = tmp_path / "ranks"
        folder.mkdir(exist_ok=True)
        made.write(folder / f"rank{rank}.json")
    ranks = [rank_of(file.path, rank=file.rank) for file in find_ranks(tmp_path / "ranks")]
    job = Job(ranks)
    for rank in ranks:
        rank.job = job
        assert rank.device_time[0].compute == original["busy"]
    found = told(ranks[0])["clock_bases"]
    assert "Unaligned clocks" in found.message
    assert "11.56 s" in found.message
    assert job.clock.aligned
    assert job.clock.residual_ns == 0


def merged(made: Kineto, label: str, *, device_process: str) -> dict[str, Any]:
    """Two copies of one trace in one file, with the same ids, the second one later."""
    document = made.document()
    events = []
    for rank in range(2):
        for event in document["traceEvents"]:
            copy = dict(event, ts=event["ts"] + rank * SKEW_US)
            pid = event["pid"] if event["pid"] == HOST else device_process
            copy["pid"] = f"[{label}{rank}] {pid}"
            events.append(copy)
    return {**document, "traceEvents": events}


@pytest.mark.parametrize("label", ["TP-", "rank ", "TP00-DP0"])
def test_t10_ranks_in_one_file_keep_their_numbers(tmp_path: Path, label: str) -> None:
    original = numbers(opened(loop(), tmp_path))
    path = tmp_path / "merged.json"
    path.write_text(json.dumps(merged(loop(), label, device_process="0")))
    ranks = ranks_of(path)
    assert [rank.rank for rank in ranks] == [0, 1]
    for rank in ranks:
        assert numbers(rank) == original
        assert rank.trust.ok
    assert ranks[1].trace.base_ns == (ranks[0].trace.base_ns or 0) + SKEW_US * US


def test_t10_ids_that_processes_share_are_said_where_nothing_tells_the_rank(
    tmp_path: Path,
) -> None:
    made = loop()
    for event in [dict(event) for event in made.events]:
        if event["pid"] == HOST:
            made.events.append({**event, "pid": 200, "tid": 200})
    rank = opened(made, tmp_path)
    assert split_ranks(rank.trace) == (rank.trace,)
    found = told(rank)["shared_ids"]
    assert (found.count, found.share) == (12, 1)  # two launches in each of six steps
    assert "100, 200" in found.message
    assert rank.voids("causes")
    assert not rank.trust.ok


def test_t10_what_convert_merges_opens_as_its_ranks(tmp_path: Path) -> None:
    from workbench.trace.writing import write_merged

    traces = []
    for rank in range(2):
        made = loop(base_ns=1_700_000_000_000_000_000 + rank * 7 * US)
        made.header["distributedInfo"] = {"rank": rank, "world_size": 2}
        traces.append(opened(made, tmp_path, f"rank{rank}.json"))
    write_merged([rank.trace for rank in traces], tmp_path / "all.json")
    again = ranks_of(tmp_path / "all.json")
    assert [rank.rank for rank in again] == [0, 1]
    assert numbers(again[0]) == numbers(traces[0])
    assert again[1].trace.base_ns == traces[1].trace.base_ns
