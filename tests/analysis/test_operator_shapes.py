"""Operators by the shapes they were called with."""

import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.operator_shapes import SHAPE_COLUMNS, shape_table
from workbench.analysis.operators import operator_table
from workbench.trace.table import Trace


def shapes(*dims: list[int]) -> dict[str, object]:
    return {"Input Dims": list(dims)}


def calls_of_two_sizes() -> Trace:
    made = Kineto(gpu=True)
    made.op("aten::mm", 0, 30, **shapes([8, 4], [4, 2]))
    made.launched("gemm", call=(5, 3), kernel=(50, 10), correlation=1)
    made.op("aten::mm", 100, 20, **shapes([8, 4], [4, 2]))
    made.op("aten::mm", 200, 40, **shapes([99, 4], [4, 2]))
    made.op("aten::relu", 300, 5)
    return columns(made)


def test_one_row_for_each_size() -> None:
    trace = calls_of_two_sizes()
    table = shape_table(trace, join_launches(trace), None)
    assert table is not None
    assert tuple(table.columns) == SHAPE_COLUMNS
    assert table.drop(columns="host_total_ns").to_numpy().tolist() == [
        ["aten::mm", "[[8,4],[4,2]]", 2, 50 * US, 10 * US],
        ["aten::mm", "[[99,4],[4,2]]", 1, 40 * US, 0],
        ["aten::relu", None, 1, 5 * US, 0],
    ]


def test_the_sizes_of_a_name_sum_to_its_row_of_all() -> None:
    trace = calls_of_two_sizes()
    launches = join_launches(trace)
    table = shape_table(trace, launches, None)
    assert table is not None
    whole = operator_table(trace, launches, None).set_index("name")
    summed = table.drop(columns="shapes").groupby("name").sum()
    assert summed.loc[whole.index].to_dict() == whole.to_dict()


def test_ten_linears_under_autocast_are_ten_calls() -> None:
    """P04: autocast wraps aten::linear and dispatches it again with cast inputs: 20 records."""
    made = Kineto()
    for i in range(10):
        at = 100 * i
        made.op("aten::linear", at, 80, **shapes([4, 8], [8, 8], [8]))
        made.op("aten::to", at + 5, 20, **shapes([4, 8]))
        made.op("aten::linear", at + 30, 40, **shapes([4, 8], [8, 8], [8]))
        made.op("aten::addmm", at + 35, 20, **shapes([8], [4, 8], [8, 8]))
    trace = columns(made)
    table = shape_table(trace, join_launches(trace), None)
    assert table is not None
    row = table.set_index("name").loc["aten::linear"]
    assert (row["calls"], row["host_total_ns"]) == (10, 10 * 80 * US)
    assert row["host_self_ns"] == 10 * (80 - 20 - 20) * US


@pytest.mark.parametrize("inner", [[4, 8], None])
def test_a_redispatch_counts_with_the_shapes_of_its_call(inner: list[int] | None) -> None:
    made = Kineto()
    made.op("aten::linear", 0, 80, **shapes([99, 8]))
    made.op("aten::linear", 10, 40, **({} if inner is None else shapes(inner)))
    trace = columns(made)
    table = shape_table(trace, join_launches(trace), None)
    assert table is not None
    assert table["shapes"].tolist() == ["[[99,8]]"]


def test_a_trace_without_shapes_has_no_table() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 30)
    trace = columns(made)
    assert shape_table(trace, join_launches(trace), None) is None
