"""Collectives of one trace: what they are, how many bytes, and what of them nothing hides."""

import pandas as pd
import pytest

from tests.analysis.jobs import ALL_REDUCE, told
from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.collective_names import collective_kind, split_of
from workbench.analysis.collectives import HOST, find_collectives
from workbench.analysis.communication import communication_table
from workbench.analysis.device_time import device_time
from workbench.analysis.host import host_breakdown
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import find_steps
from workbench.statistics.link import bus_factor


def table(made: Kineto, until_us: float) -> pd.DataFrame:
    """The table of device 0 from 0 on; its sums are held against ``device_time``."""
    trace = columns(made)
    window = Range(start=0, end=int(until_us * US))
    found = find_collectives(trace, join_launches(trace), None, window)
    assert found is not None
    answer = communication_table(found, {0: window})
    whole = device_time(trace, 0, window)
    assert answer["total_ns"].sum() == whole.communication
    assert answer["exposed_ns"].sum() == whole.exposed_communication
    return answer


def test_of_five_buckets_only_the_last_is_exposed_by_exactly_its_length() -> None:
    made = Kineto(gpu=True)
    made.kernel("gemm", 0, 100)
    for bucket in range(4):
        made.kernel(ALL_REDUCE, 20 * bucket, 15, stream=20)
    made.kernel(ALL_REDUCE, 100, 7, stream=20)
    (row,) = table(made, 200).itertuples()
    assert (row.collective, row.calls) == ("all_reduce", 5)
    assert row.total_ns == (4 * 15 + 7) * US
    assert row.exposed_ns == 7 * US


def test_partial_overlap_with_compute_on_two_streams_is_hidden_once() -> None:
    """Compute covers 0-10 and 8-20 on two streams; the collective runs 5-30."""
    made = Kineto(gpu=True)
    made.kernel("gemm", 0, 10, stream=7)
    made.kernel("gemm", 8, 12, stream=8)
    made.kernel(ALL_REDUCE, 5, 25, stream=20)
    (row,) = table(made, 50).itertuples()
    assert row.exposed_ns == 10 * US


def test_an_instant_of_two_collectives_counts_for_the_one_that_began_first() -> None:
    """0-10 and 4-16 share 4-10: ten for the first, six for the second, sixteen as a union."""
    made = Kineto(gpu=True)
    made.kernel(ALL_REDUCE, 0, 10, stream=20)
    made.kernel("ncclDevKernel_AllGather_RING_LL()", 4, 12, stream=21)
    answer = table(made, 50).set_index("collective")["total_ns"]
    assert answer["all_reduce"] == 10 * US
    assert answer["all_gather"] == 6 * US


def test_bytes_and_bus_bandwidth_follow_the_formula_of_the_nccl_tests() -> None:
    """4 MB over 4 ranks cross the busiest link 2 x 3/4 times: 6 MB in 100 us are 60 GB/s."""
    made = Kineto(gpu=True)
    made.op("record_param_comms", 0, 20, **told(4))
    made.launched(ALL_REDUCE, call=(5, 5), kernel=(30, 100), correlation=1)
    (row,) = table(made, 200).itertuples()
    assert (row.group, row.bytes) == ("0", 4_000_000)
    assert row.bus_gb_s == pytest.approx(60)
    assert (row.wait_ns is pd.NA, row.transfer_ns) == (True, 100 * US), "one rank alone"


@pytest.mark.parametrize(
    ("name", "kernel", "elements"),
    [
        ("_allgather_base", "ncclDevKernel_AllGather_RING_LL()", (250, 1000)),
        ("_reduce_scatter_base", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL()", (1000, 250)),
    ],
)
def test_gather_and_scatter_count_the_buffer_of_all_ranks(
    name: str, kernel: str, elements: tuple[int, int]
) -> None:
    """1000 bfloat16 in 10 us over 4 ranks: 2000 B x 3/4 / 10 us = 0.15 GB/s."""
    made = Kineto(gpu=True)
    args = {"Collective name": name, "dtype": "BFloat16", "Group size": 4}
    args |= {"In msg nelems": elements[0], "Out msg nelems": elements[1]}
    made.kernel(kernel, 0, 10, **args)
    (row,) = table(made, 50).itertuples()
    assert row.bytes == 2000
    assert row.bus_gb_s == pytest.approx(0.15)


def test_the_range_of_an_older_torch_gives_bytes_but_no_group_and_so_no_bandwidth() -> None:
    made = Kineto(gpu=True)
    made.op("record_param_comms", 0, 20)
    inside = made.range("nccl:all_reduce", 2, 16)
    inside["args"] = {"Input Dims": [[500, 2]], "Input type": ["float"]}
    made.launched(ALL_REDUCE, call=(5, 5), kernel=(30, 100), correlation=1)
    (row,) = table(made, 200).itertuples()
    assert row.bytes == 4000
    assert row.group is None
    assert pd.isna(row.bus_gb_s)


def test_two_kernels_of_one_call_are_one_collective() -> None:
    made = Kineto(gpu=True)
    made.op("record_param_comms", 0, 20, **told(4))
    made.launched(ALL_REDUCE, call=(5, 2), kernel=(30, 10), correlation=1)
    made.launched(ALL_REDUCE, call=(9, 2), kernel=(40, 10), correlation=2)
    (row,) = table(made, 200).itertuples()
    assert (row.calls, row.bytes, row.total_ns) == (1, 4_000_000, 20 * US)


def test_an_all_to_all_is_told_from_send_and_receive_by_the_hosts_record() -> None:
    made = Kineto(gpu=True)
    made.range("nccl:all_to_all", 0, 20)
    made.launched("ncclDevKernel_SendRecv()", call=(5, 2), kernel=(30, 10), correlation=1)
    made.kernel("ncclDevKernel_SendRecv()", 60, 10)
    assert set(table(made, 100)["collective"]) == {"all_to_all", "send_recv"}


def test_gloo_is_exposed_where_the_loops_thread_runs_no_leaf_operator() -> None:
    """The all-reduce runs 10-40 beside a matmul of 0-25, so 15 of its 30 us are exposed."""
    made = Kineto()
    made.step(1, 0, 60)
    made.op("aten::mm", 0, 25)
    ring = made.range("gloo:all_reduce", 10, 30, tid=200)
    ring["args"] = {"Input Dims": [[1000]], "Input type": ["float"]}
    made.header["distributedInfo"] = {
        "rank": 0,
        "world_size": 2,
        "pg_config": [{"pg_name": "0", "pg_size": 2, "ranks": [0, 1]}],
    }
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    window = Range(start=0, end=60 * US)
    found = find_collectives(trace, launches, steps, window)
    assert found is not None
    (row,) = communication_table(found, {HOST: window}).itertuples()
    assert (row.collective, row.group, row.bytes) == ("all_reduce", "0", 4000)
    assert (row.total_ns, row.exposed_ns) == (30 * US, 15 * US)
    assert row.exposed_ns == host_breakdown(trace, window, steps)["communication"]


def test_a_trace_with_operators_alone_holds_no_collective_and_one_without_cannot_tell() -> None:
    some, none = Kineto(), Kineto()
    some.op("aten::mm", 0, 10)
    none.python("loop.py(1): main", 0, 10, ident=1, parent=None)
    for made, length in ((some, 0), (none, None)):
        trace = columns(made)
        found = find_collectives(trace, join_launches(trace), None, None)
        assert (None if found is None else len(found)) == length


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL()", "reduce_scatter"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL()", "reduce"),
        ("nccl:_all_gather_base", "all_gather"),
        ("ncclDevKernel_Broadcast_RING_LL()", "broadcast"),
        ("ncclDevKernel_SendRecv()", "send_recv"),
        ("all_to_allv", "all_to_allv"),
        ("gloo:send", "send"),
        ("gloo:recv", "recv"),
        ("void cross_device_reduce_1stage<half, 2>()", "all_reduce"),
        ("nccl:something_new", "other"),
    ],
)
def test_names_of_records_ranges_and_kernels(name: str, kind: str) -> None:
    assert collective_kind(name) == kind


def test_only_a_record_can_tell_that_an_all_to_all_is_even() -> None:
    assert split_of("all_to_all", told=True) == "minimum"
    assert split_of("all_to_all", told=False) == "arrival"
    assert split_of("send", told=True) == "none"


def test_the_factor_of_every_kind() -> None:
    assert bus_factor("all_reduce", 8) == 2 * 7 / 8
    assert bus_factor("all_gather", 8) == 7 / 8
    assert bus_factor("broadcast", 8) == 1
