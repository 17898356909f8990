"""Communication by process group and type: bytes, exposed and hidden time."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.analysis.jobs import ALL_REDUCE, told
from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.collectives import find_collectives
from workbench.analysis.device_time import device_time
from workbench.analysis.launches import join_launches
from workbench.analysis.process_groups import GROUP_COLUMNS, group_table
from workbench.analysis.ranges import Range
from workbench.run.rank import RankAnalysis
from workbench.trace import read


def table(made: Kineto) -> pd.DataFrame:
    trace = columns(made)
    window = Range(start=0, end=1000 * US)
    found = find_collectives(trace, join_launches(trace), None, window)
    assert found is not None
    answer = group_table(found, {0: window})
    whole = device_time(trace, 0, window)
    assert answer["total_ns"].sum() == whole.communication
    assert answer["exposed_ns"].sum() == whole.exposed_communication
    return answer


def tensor_parallel_and_data_parallel() -> Kineto:
    """Group 1 of 2 ranks reduces bf16 twice, once beside compute; group 0 of 8 ranks floats."""
    made = Kineto(gpu=True)
    pair: dict[str, Any] = told(2, dtype="BFloat16", **{"Process Group Name": "1"})
    made.kernel("gemm", 0, 100)
    made.kernel(ALL_REDUCE, 20, 30, stream=20, **pair)
    made.kernel(ALL_REDUCE, 120, 50, stream=20, **pair)
    made.kernel(ALL_REDUCE, 200, 40, stream=21, **told(8))
    return made


def test_a_row_a_group_and_type_with_its_bytes() -> None:
    """A million elements each: 2 MB in bf16, twice, and 4 MB in floats."""
    made = table(tensor_parallel_and_data_parallel())
    assert tuple(made.columns) == GROUP_COLUMNS
    assert made[["group", "group_size", "dtype", "calls", "bytes"]].to_numpy().tolist() == [
        ["1", 2, "BFloat16", 2, 4_000_000],
        ["0", 8, "Float", 1, 4_000_000],
    ]
    assert made["ranks"].tolist() == ["[0, 1]", "[0, 1, 2, 3, 4, 5, 6, 7]"]


def test_what_compute_covers_is_hidden() -> None:
    """Of the pair's 80 us, 30 lie beside the gemm."""
    made = table(tensor_parallel_and_data_parallel()).set_index("group")
    assert (made["exposed_ns"]["1"], made["hidden_ns"]["1"]) == (50 * US, 30 * US)
    assert made["hidden_ns"]["0"] == 0


def test_one_rank_alone_does_not_know_who_waited() -> None:
    made = table(tensor_parallel_and_data_parallel())
    assert made["wait_ns"].isna().all()
    assert (made["transfer_ns"] == made["total_ns"]).all()


def test_a_collective_of_unknown_size_leaves_the_bytes_unmeasured() -> None:
    made = Kineto(gpu=True)
    made.kernel(ALL_REDUCE, 0, 30, stream=20)
    (row,) = table(made).itertuples()
    assert (row.group, row.dtype) == (None, None)
    assert pd.isna(row.bytes)


def test_no_collective_gives_an_empty_table_with_all_columns() -> None:
    made = Kineto(gpu=True)
    made.kernel("gemm", 0, 100)
    assert tuple(table(made).columns) == GROUP_COLUMNS


@pytest.mark.traces
def test_groups_of_a_real_trace_by_pandas_alone(traces_root: Path) -> None:
    """HTA counts 21 NCCL kernels in it, the first one an all-reduce of 2 049 000 floats."""
    (path,) = traces_root.glob("facebookresearch__HolisticTraceAnalysis/*nccl_parser*")
    raw = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"])
    raw = raw[(raw["cat"] == "kernel") & raw["name"].str.startswith("nccl")]
    raw["dtype"] = [args["dtype"] for args in raw["args"]]
    raw["elements"] = [args["In msg nelems"] for args in raw["args"]]
    trace = read(path)
    found = find_collectives(trace, join_launches(trace), None, None)
    assert found is not None
    window = Range(start=0, end=int(trace.events.end.max()))
    made = group_table(found, {0: window}).set_index("dtype")
    assert made["calls"].sum() == len(raw) == 21
    for dtype, width in (("Float", 4), ("Long", 8)):
        own = raw[raw["dtype"] == dtype]
        assert made["bytes"][dtype] == own["elements"].sum() * width
        assert made["total_ns"][dtype] == pytest.approx(own["dur"].sum() * US, abs=len(own))


@pytest.mark.traces
def test_groups_of_a_rank_sum_to_its_communication(traces_root: Path) -> None:
    (path,) = traces_root.glob("KellerJordan__modded-nanogpt/*rank0*")
    trace = read(path)
    rank = RankAnalysis(source=path.name, rank=None, read=lambda: trace)
    groups, kinds = rank.details.groups, rank.communication
    assert groups is not None
    assert kinds is not None
    for column in ("calls", "bytes", "total_ns", "exposed_ns"):
        assert groups[column].sum() == kinds[column].sum()
    assert (kinds["hidden_ns"] + kinds["exposed_ns"] == kinds["total_ns"]).all()
