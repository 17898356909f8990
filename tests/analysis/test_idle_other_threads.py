"""A thread beside the loop sends work: while it does nothing itself, the loop's thread decides.

The device is idle from 100 to 200 us and thread 300, such as one that sends batches ahead, launches
the copy that ends the gap, from 180 to 190.
"""

from tests.analysis.idle_cases import causes, explained
from tests.kineto import Kineto

HELPER = 300


def sent_ahead(*, tid: int = HELPER) -> Kineto:
    made = Kineto(gpu=True)
    made.step(1, 0, 400)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.op("aten::mm", 41, 2)
    made.launched("copy", call=(180, 10), kernel=(200, 10), correlation=2, stream=30, tid=tid)
    return made


def test_a_thread_in_no_record_waits_for_what_the_loop_waits_for() -> None:
    """Removing the loop's 60 us for input would let the loop launch in them."""
    made = sent_ahead()
    made.loader(110, 60)
    assert causes(explained(made)) == {"host_other": 20, "input": 60, "launch": 20}


def test_its_own_records_come_first() -> None:
    """It asks for memory in [120, 140) while the loop's thread is in an operator."""
    made = sent_ahead()
    made.op("aten::mm", 110, 60)
    made.runtime("cudaHostAlloc", 120, 20, correlation=9, tid=HELPER)
    assert causes(explained(made)) == {
        "host_other": 20,
        "host_operators": 40,
        "allocation": 20,
        "launch": 20,
    }


def test_a_range_of_its_own_tells_what_it_does() -> None:
    made = sent_ahead()
    made.loader(110, 60)
    made.range("decode images", 90, 85, tid=HELPER)
    assert causes(explained(made)) == {"host_other": 80, "launch": 20}


def test_the_loop_itself_asks_no_other_thread() -> None:
    made = sent_ahead(tid=100)
    made.op("aten::mm", 110, 60, tid=HELPER)
    assert causes(explained(made)) == {"host_other": 80, "launch": 20}


def test_without_marked_steps_the_thread_that_launches_most_is_the_loop() -> None:
    made = sent_ahead()
    made.launched("again", call=(46, 2), kernel=(60, 10), correlation=3)
    made.events = [event for event in made.events if "ProfilerStep" not in event["name"]]
    made.loader(110, 60)
    assert causes(explained(made))["input"] == 60


def test_a_third_thread_beside_backward_sees_what_both_others_do() -> None:
    """The loop is in backward: its autograd thread runs a node in [105, 125)."""
    made = sent_ahead()
    made.op("aten::addmm", 60, 20, **{"Sequence number": 5})
    made.op(
        "autograd::engine::evaluate_function: AddmmBackward0",
        105,
        20,
        tid=200,
        **{"Sequence number": 5, "Fwd thread id": 1},
    )
    assert causes(explained(made)) == {"host_other": 60, "host_operators": 20, "launch": 20}
