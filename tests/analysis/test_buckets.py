"""Gradient buckets against backward: which are hidden, and that only the last one is not."""

from pathlib import Path

import pytest

import workbench as wb
from tests.kineto import Kineto
from workbench.analysis.buckets import backward_passes, bucket_table, summed_buckets
from workbench.run.rank import RankAnalysis

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TOLD = {
    "Collective name": "allreduce",
    "In msg nelems": 1_000_000,
    "Out msg nelems": 1_000_000,
    "Group size": 2,
    "dtype": "Float",
}
STEP = 1000.0


def five_buckets(*, hidden: int, partly: float = 0.0, steps: int = 3) -> Kineto:
    """L08: backward computes from 100 to 600; five buckets of 70 µs, the last after backward.

    ``hidden`` of the first four lie under compute, the others follow behind backward as well.
    ``partly`` is by how much the last one begins before the end of backward.
    """
    made = Kineto(gpu=True)
    number = 0
    for step in range(steps):
        at = step * STEP
        made.step(step, at, STEP)
        made.op("aten::mm", at + 5, 10, **{"Sequence number": step})
        name = "autograd::engine::evaluate_function: MmBackward0"
        made.op(name, at + 50, 100, **{"Sequence number": step})
        number += 1
        made.launched("gemm", call=(at + 60, 5), kernel=(at + 100, 500), correlation=number)
        late = 0
        for bucket in range(5):
            begins = 110 + 80 * bucket
            if bucket >= hidden:
                begins, late = 600 - partly + 70 * late, late + 1
            number += 1
            call = at + 70 + 10 * bucket
            made.op("record_param_comms", call, 8, **TOLD)
            made.runtime("cudaLaunchKernel", call + 2, 4, correlation=number)
            made.kernel(NCCL, at + begins, 70, correlation=number, stream=20)
    return made


def opened(made: Kineto, folder: Path) -> RankAnalysis:
    return wb.open(made.write(folder / "trace.json")).ranks[0]


def test_of_five_buckets_only_the_last_is_exposed_and_by_exactly_its_length(tmp_path: Path) -> None:
    """Four run beside the gemm of 500 µs; 70 of a step of 1000 are exposed: 7 %."""
    rank = opened(five_buckets(hidden=4), tmp_path)
    table = bucket_table(rank.trace, rank.collectives, rank.launches, rank.steps)
    assert table is not None
    assert table["exposed_ns"].tolist() == [0, 0, 0, 0, 70_000] * 3
    assert table["after_ns"].tolist() == [0, 0, 0, 0, 70_000] * 3
    assert table["start_ns"].tolist()[:5] == [10_000, 90_000, 170_000, 250_000, 500_000]
    assert set(table["backward_ns"]) == {500_000}
    assert table["bytes"].tolist() == [4_000_000] * 15
    found = summed_buckets(table)
    assert found is not None
    assert (found.passes, found.buckets, found.bytes) == (3, 5, 4_000_000)
    assert found.exposed_ns == found.last_exposed_ns == 70_000


def test_two_streams_that_overlap_in_part_count_only_what_compute_leaves(tmp_path: Path) -> None:
    """The last bucket begins 30 µs before the gemm ends: 40 of its 70 are exposed."""
    rank = opened(five_buckets(hidden=4, partly=30), tmp_path)
    found = summed_buckets(rank.details.buckets)
    assert found is not None
    assert found.exposed_ns == 40_000


def test_a_finding_says_that_only_the_last_bucket_is_exposed(tmp_path: Path) -> None:
    """7 % is no finding; the same bucket in steps of 500 µs (backward of 400) would be 14 %."""
    quiet = wb.open(five_buckets(hidden=4).write(tmp_path / "quiet.json"))
    assert "WB401" not in {each.code for each in quiet.findings}
    loud = wb.open(five_buckets(hidden=2).write(tmp_path / "loud.json"))
    finding = next(each for each in loud.findings if each.code == "WB401")
    assert finding.evidence["buckets"] == 5
    # three buckets of 70 µs follow backward, one of them is the last
    assert finding.evidence["last_bucket_exposed_us"] == pytest.approx(70)
    assert finding.evidence["exposed_calls"] == 3 * 3


def test_micro_batches_are_passes_of_their_own_and_checkpoints_are_not(tmp_path: Path) -> None:
    """A forward operator inside a node is computed again; one between two nodes begins a pass."""
    made = Kineto()
    made.step(0, 0, 1000)
    for number, at in enumerate((0, 300)):
        made.op("aten::mm", at + 10, 20, **{"Sequence number": number})
        node = made.op("autograd::engine::evaluate_function: MmBackward0", at + 50, 100)
        node["args"]["Sequence number"] = number
        made.op("aten::mm", at + 60, 20, **{"Sequence number": number})  # a checkpoint
        made.op("autograd::engine::evaluate_function: AddBackward0", at + 160, 40)
    passes = backward_passes(opened(made, tmp_path).trace)
    starts = passes.start - passes.start[0]
    assert starts.tolist() == [0, 300_000]
    assert (passes.end - passes.start).tolist() == [150_000, 150_000]
