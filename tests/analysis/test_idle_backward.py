"""In backward two threads share the work: who decides is the one that is not waiting.

The device is idle from 100 to 200 us; the autograd thread launches the kernel that ends the gap.
"""

from tests.analysis.idle_cases import causes, explained
from tests.kineto import Kineto

MAIN, AUTOGRAD = 100, 200


def backward(*, call: float = 180) -> Kineto:
    """Forward on the main thread until 90, node A in [105, 115), node B from 170 on."""
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.range("anything, so that ranges are known", 1, 1)
    made.op("aten::mm", 30, 30, tid=MAIN, **{"Sequence number": 5})
    node(made, 105, 10, sequence=5)
    node(made, 170, 40, sequence=4)
    made.launched("second", call=(call, 5), kernel=(200, 10), correlation=2, tid=AUTOGRAD)
    return made


def node(made: Kineto, ts: float, dur: float, *, sequence: int) -> None:
    made.op(
        "autograd::engine::evaluate_function: MmBackward0",
        ts,
        dur,
        tid=AUTOGRAD,
        **{"Sequence number": sequence, "Fwd thread id": 1},
    )


def test_between_two_nodes_the_engine_works() -> None:
    """[100, 105) belongs to no node yet; from 105 to the call at 180 it is all the engine."""
    found = causes(explained(backward()))
    assert found == {"host_other": 5, "host_operators": 75, "launch": 20}


def test_a_record_that_the_caller_begins_between_two_nodes_hands_the_time_to_it() -> None:
    """The main thread loads [120, 160): it is not waiting in backward()."""
    made = backward()
    made.loader(120, 40, tid=MAIN)
    found = causes(explained(made))
    assert found == {
        "host_other": 5 + 5 + 10,
        "input": 40,
        "host_operators": 10 + 10,
        "launch": 20,
    }


def test_before_the_first_node_the_caller_decides() -> None:
    made = backward()
    made.loader(98, 7, tid=MAIN)
    assert causes(explained(made))["input"] == 5


def test_the_caller_that_waits_in_backward_is_asked_through_the_autograd_thread() -> None:
    """The main thread launches at 180, after nodes in [105, 115) and [120, 160).

    It had begun nothing since 60: it waited in backward() from 105 to 160.
    """
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.range("anything", 1, 1)
    made.op("aten::mm", 30, 30, tid=MAIN, **{"Sequence number": 5})
    node(made, 105, 10, sequence=5)
    node(made, 120, 40, sequence=4)
    made.runtime("cudaMalloc", 130, 10, correlation=9, tid=AUTOGRAD)
    made.launched("second", call=(180, 10), kernel=(200, 10), correlation=2, tid=MAIN)
    assert causes(explained(made)) == {
        "host_other": 5 + 20,
        "host_operators": 45,
        "allocation": 10,
        "launch": 20,
    }


def test_a_caller_that_works_itself_is_not_waiting() -> None:
    """The main thread is inside its own operator while another thread runs nodes."""
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.op("aten::mm", 30, 5, tid=MAIN, **{"Sequence number": 5})
    made.range("anything", 1, 1)
    made.runtime("cudaStreamSynchronize", 101, 70, correlation=9, tid=MAIN)
    node(made, 105, 10, sequence=5)
    node(made, 120, 40, sequence=4)
    made.launched("second", call=(180, 10), kernel=(200, 10), correlation=2, tid=MAIN)
    assert causes(explained(made))["synchronization"] == 70
