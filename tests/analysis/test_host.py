"""Where the loop's thread spends a CPU step: one part for every nanosecond."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.traces import US, columns
from tests.kineto import HOST, Kineto
from workbench.analysis.host import PARTS, host_breakdown, loop_lane
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import find_steps
from workbench.analysis.window import window

NODE = "autograd::engine::evaluate_function: AddmmBackward0"


def parts(made: Kineto) -> dict[str, float | None]:
    """The breakdown of the window, in us, without what is zero."""
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    held = window(trace, None, steps, launches)
    assert held is not None
    found = host_breakdown(trace, held, steps)
    assert list(found) == list(PARTS)
    assert sum(ns or 0 for ns in found.values()) == held.length
    return {name: ns if ns is None else ns / US for name, ns in found.items() if ns != 0}


def test_a_training_step() -> None:
    made = Kineto()
    made.step(0, 0, 1000)
    made.loader(10, 100)
    made.op("aten::stack", 20, 30)
    made.op("aten::to", 120, 5)
    made.op("aten::linear", 150, 100, **{"Sequence number": 4})
    made.op(NODE, 300, 100, **{"Sequence number": 4})
    made.op("aten::mm", 310, 50)
    made.op(NODE, 420, 50, **{"Sequence number": 3})
    made.range("Optimizer.step#SGD.step", 500, 80)
    made.range("Optimizer.zero_grad#SGD.zero_grad", 600, 20)
    assert parts(made) == {
        "input": 100,
        "optimizer": 100,
        "backward": 170,
        "forward": 100,
        "other_operators": 5,
        "host_python": None,
        "host_other": 525,
    }


def test_the_engine_s_own_code_between_two_nodes_is_backward() -> None:
    """Between 400 and 420 no record starts; between 470 and 600 the loop did something else."""
    made = Kineto()
    made.step(0, 0, 1000)
    made.op(NODE, 300, 100)
    made.op(NODE, 420, 50)
    made.op("aten::clone", 500, 10)
    made.op(NODE, 600, 100)
    assert parts(made)["backward"] == 270


def test_our_ranges_name_what_python_does_in_them() -> None:
    made = Kineto()
    made.step(0, 0, 1000)
    made.range("forward", 100, 300)
    made.op("aten::linear", 150, 20)
    made.range("backward", 450, 200)
    made.op(NODE, 500, 50)
    found = parts(made)
    assert (found["forward"], found["backward"]) == (300, 200)


def test_an_operator_without_a_backward_partner_is_another_one() -> None:
    made = Kineto()
    made.step(0, 0, 100)
    made.op("aten::linear", 10, 20, **{"Sequence number": 9})
    made.op("aten::argmax", 40, 20)
    assert parts(made)["other_operators"] == 40


def test_stack_records_tell_python_from_the_rest() -> None:
    made = Kineto()
    made.step(0, 0, 100)
    made.python("train.py(3): augment", 20, 60, ident=1, parent=None)
    made.op("aten::relu", 30, 10)
    assert parts(made) == {
        "input": None,
        "other_operators": 10,
        "host_python": 50,
        "host_other": 40,
    }


def test_an_exchange_on_another_thread_costs_only_what_the_loop_waits_for_it() -> None:
    """Gloo works from 100 to 400; the loop computes until 250, then waits."""
    made = Kineto()
    made.step(0, 0, 500)
    made.op("c10d::allreduce_", 90, 10)
    made.range("gloo:all_reduce", 100, 300, tid=HOST + 7)
    made.op(NODE, 100, 250)
    made.op("aten::mm", 120, 130)
    found = parts(made)
    assert found["communication"] == 10 + 20 + 150, "beside the leaf operator from 120 to 250"
    assert found["backward"] == 130


def test_an_operator_with_children_hides_an_exchange_and_a_node_that_may_wait_does_not() -> None:
    """Gloo works from 100 to 400. A matmul with a child computes from 120 to 200.

    A function in Python runs from 200 to 500 and waits after its own small operator of 210 to 220;
    a copy of an asynchronous tensor, from 300 to 400, calls the wait itself and hides nothing.
    """
    made = Kineto()
    made.step(0, 0, 600)
    made.range("gloo:all_reduce", 100, 300, tid=HOST + 7)
    made.op("aten::mm", 120, 80)
    made.op("aten::resolve_conj", 121, 1)
    made.op("Redistribute", 200, 300)
    made.op("aten::empty", 210, 10)
    made.op("aten::copy_", 300, 100)
    made.op("_c10d_functional::wait_tensor", 310, 80)
    assert parts(made)["communication"] == 300 - 80 - 10


def test_input_inside_another_range_wins() -> None:
    made = Kineto()
    made.step(0, 0, 100)
    made.range("forward", 10, 80)
    made.loader(20, 30)
    found = parts(made)
    assert (found["input"], found["forward"]) == (30, 50)


def test_without_steps_the_thread_with_most_operator_time_is_the_loop() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 10, tid=1)
    made.op("aten::mm", 0, 100, tid=2)
    trace = columns(made)
    lane = loop_lane(trace, None)
    assert lane is not None
    assert trace.lanes[lane].tid == "2"


def test_steps_of_old_torch_are_operators_by_category_only() -> None:
    made = Kineto()
    made.event("ProfilerStep#1", "Operator", 0, 100)
    made.event("aten::mm", "Operator", 10, 20)
    assert parts(made) == {
        "input": None,
        "other_operators": 20,
        "host_python": None,
        "host_other": 80,
    }


def test_a_trace_without_operators_is_unnamed_host_code() -> None:
    made = Kineto()
    made.kernel("k", 0, 10)
    found = host_breakdown(columns(made), Range(start=0, end=10), None)
    assert found["host_other"] == 10
    assert found["input"] is None


record = st.tuples(
    st.sampled_from(
        ("aten::mm", NODE, "forward", "backward", "gloo:x", "c10d::y", "Optimizer.step#A", "loader")
    ),
    st.integers(0, 300),
    st.integers(0, 100),
    st.sampled_from((HOST, HOST + 1)),
)


@settings(deadline=None, max_examples=80)
@given(st.lists(record, max_size=15))
def test_whatever_was_recorded_the_parts_sum_to_the_window(
    records: list[tuple[str, int, int, int]],
) -> None:
    made = Kineto()
    made.step(0, 0, 400)
    for name, ts, dur, tid in records:
        if name == "loader":
            made.loader(ts, dur, tid=tid)
        else:
            made.op(name, ts, dur, tid=tid)
    found = parts(made)
    assert all(ns is None or ns > 0 for ns in found.values())
