"""What operators cost: self and total on the host, and the device work that they launched."""

import math

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.operators import OPERATOR_COLUMNS, operator_table
from workbench.analysis.ranges import Range


def table(made: Kineto, span: Range | None = None) -> dict[str, tuple[int, float, float, float]]:
    """Per operator: calls, self, total and device time in microseconds."""
    trace = columns(made)
    found = operator_table(trace, join_launches(trace), span)
    assert tuple(found.columns) == OPERATOR_COLUMNS
    return {
        row.name: (row.calls, row.host_self_ns / US, row.host_total_ns / US, row.device_ns / US)
        for row in found.itertuples(index=False)
    }


def linear(made: Kineto, ts: float, *, correlation: int) -> None:
    """``aten::linear`` of 100 us holds ``aten::addmm`` of 60, which launches a kernel of 40."""
    made.op("aten::linear", ts, 100)
    made.op("aten::addmm", ts + 20, 60)
    made.launched("gemm", call=(ts + 30, 5), kernel=(ts + 50, 40), correlation=correlation)


def test_self_time_leaves_out_what_was_called_and_device_time_contains_it() -> None:
    made = Kineto()
    linear(made, 0, correlation=1)
    linear(made, 200, correlation=2)
    assert table(made) == {
        "aten::addmm": (2, 120, 120, 80),
        "aten::linear": (2, 80, 200, 80),
    }


def test_operators_of_other_threads_do_not_nest() -> None:
    made = Kineto()
    made.op("aten::linear", 0, 100)
    made.op("aten::addmm", 20, 60, tid=555)
    found = table(made)
    assert found["aten::linear"][1] == 100
    assert found["aten::addmm"][1] == 60


def test_a_redispatch_is_one_call_and_its_time_counts_once() -> None:
    made = Kineto()
    made.op("aten::copy_", 0, 100)
    made.op("aten::copy_", 10, 80)
    made.launched("copy", call=(30, 5), kernel=(50, 40), correlation=1)
    assert table(made) == {"aten::copy_": (1, 100, 100, 40)}


def test_a_recursion_counts_every_call_but_its_time_once() -> None:
    """``checkpoint`` runs ``aten::mm`` which runs ``checkpoint`` again."""
    made = Kineto()
    made.op("x::checkpoint", 0, 100)
    made.op("aten::mm", 10, 80)
    made.op("x::checkpoint", 20, 60)
    found = table(made)
    assert (found["x::checkpoint"][0], found["x::checkpoint"][2]) == (2, 100)
    assert found["x::checkpoint"][1] + found["aten::mm"][1] == 100, "self time sums to the union"


def test_ranges_that_cross_by_rounding_are_nested() -> None:
    """T06: the child ends 0.4 us after its parent; the parent's self time is what it began with."""
    made = Kineto()
    made.op("aten::a", 0, 10)
    made.op("aten::b", 8, 2.4)
    found = table(made)
    assert math.isclose(found["aten::a"][1], 8)
    assert math.isclose(found["aten::b"][1], 2.4)


def test_steps_loaders_and_user_ranges_are_no_operators_but_optimizers_are() -> None:
    made = Kineto()
    made.step(1, 0, 400)
    made.loader(10, 20)
    made.range("my phase", 40, 200)
    made.range("Optimizer.step#SGD.step", 50, 100)
    made.op("aten::add_", 60, 30)
    assert set(table(made)) == {"Optimizer.step#SGD.step", "aten::add_"}
    assert table(made)["Optimizer.step#SGD.step"][1:3] == (70, 100)


def test_a_phase_shows_its_host_time_beside_its_device_time() -> None:
    """H05: 26 small launches, 138 us of the host for 13 us of the device."""
    made = Kineto()
    made.range("Optimizer.step#AdamW.step", 0, 138)
    for i in range(26):
        made.op("aten::add_", 1 + 5 * i, 4)
        made.launched("k", call=(2 + 5 * i, 1), kernel=(5 + 5 * i, 0.5), correlation=i + 1)
    found = table(made)
    assert found["Optimizer.step#AdamW.step"][2:] == (138, 13)
    assert found["aten::add_"] == (26, 104, 104, 13)


def test_old_files_write_ranges_into_the_category_of_operators() -> None:
    made = Kineto()
    made.op("ProfilerStep#1", 0, 400)
    made.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 20)
    made.op("my phase", 40, 200)
    made.op("aten::add_", 60, 30)
    made.op("MmBackward", 100, 30)
    assert set(table(made)) == {"aten::add_", "MmBackward"}


def test_without_a_launch_record_the_external_id_tells_the_operator() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 10, **{"External id": 7})
    made.kernel("gemm", 50, 40, correlation=1, **{"External id": 7})
    assert table(made) == {"aten::mm": (1, 10, 10, 40)}


def test_without_device_work_its_time_is_not_measured() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 10)
    assert math.isnan(table(made)["aten::mm"][3])


def test_a_range_holds_the_operators_that_begin_in_it() -> None:
    made = Kineto()
    linear(made, 0, correlation=1)
    linear(made, 200, correlation=2)
    assert table(made, Range(start=200 * US, end=300 * US))["aten::linear"] == (1, 40, 100, 40)


def test_no_operators_give_an_empty_table_with_all_columns() -> None:
    assert table(Kineto()) == {}


def test_calls_that_go_on_behind_each_other_take_no_less_than_they_do_themselves() -> None:
    """Three requests of 10 us, 1 us after each other, are open for 12 us together."""
    trace = Kineto()
    for number in range(3):
        trace.op("rpc_async#fetch", number, 10)
    assert table(trace)["rpc_async#fetch"][1:3] == (12, 12)
