"""How long the loop waited for its data, and how many batches came of it."""

import pytest

from tests.analysis.traces import MS, US, columns
from tests.kineto import HOST, Kineto
from workbench.analysis.input_wait import InputWait, input_wait, is_input
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range
from workbench.analysis.steps import find_steps

EVERYTHING = Range(start=0, end=10_000 * MS)


def waited(made: Kineto, within: Range = EVERYTHING) -> InputWait | None:
    trace = columns(made)
    return input_wait(trace, within, find_steps(trace, join_launches(trace)))


def measured(made: Kineto, within: Range = EVERYTHING) -> InputWait:
    found = waited(made, within)
    assert found is not None
    return found


def epoch(made: Kineto, ts: float, batches: int) -> float:
    """Waits of 20 us, each followed by 80 us of work; then the call that ends the loop."""
    for _ in range(batches):
        made.loader(ts, 20)
        for i in range(20):
            made.op("aten::mm", ts + 20 + 4 * i, 3)
        ts += 100
    made.loader(ts, 2)
    return ts + 2


def test_seven_calls_for_six_batches() -> None:
    made = Kineto()
    epoch(made, 0, 6)
    found = measured(made)
    assert len(found.waits.start) == 7
    assert found.batches == 6
    assert found.waits.batch.tolist() == [True] * 6 + [False]
    assert found.wait_ns == 122 * US


def test_the_end_of_an_epoch_between_two_others_is_no_batch() -> None:
    """The mean loss is computed between the epochs: one operator where a batch has twenty."""
    made = Kineto()
    end = epoch(made, 0, 3)
    made.op("aten::mean", end + 1, 2)
    epoch(made, end + 10, 3)
    assert measured(made).batches == 6


def test_operators_inside_a_wait_are_not_work_done_with_a_batch() -> None:
    """With no workers the loader collates on the loop's own thread."""
    made = Kineto()
    for ts in (0, 100):
        made.loader(ts, 50)
        made.op("aten::stack", ts + 10, 30)
        made.op("aten::mm", ts + 60, 30)
    made.loader(200, 50)
    made.op("aten::stack", 210, 30)
    assert measured(made).batches == 2


def test_a_step_that_ends_shows_that_a_batch_came_though_nothing_was_computed() -> None:
    made = Kineto()
    for number, ts in enumerate((0, 100)):
        made.step(number, ts, 100)
        made.loader(ts + 1, 30)
    made.loader(200, 2)
    found = measured(made)
    assert found.batches == 2
    assert found.waits.step.tolist() == [0, 1, -1]


def test_a_wait_of_ours_around_one_of_torch_counts_once() -> None:
    made = Kineto()
    made.range("workbench.input", 0, 25)
    made.loader(2, 20)
    made.op("aten::mm", 30, 50)
    found = measured(made)
    assert (found.wait_ns, found.batches) == (25 * US, 1)


def test_only_the_part_inside_the_window_counts() -> None:
    made = Kineto()
    epoch(made, 0, 3)
    found = measured(made, Range(start=10 * US, end=110 * US))
    assert found.wait_ns == 20 * US, "ten of the first wait and ten of the second"
    assert found.batches == 1, "the second ends later"


def test_the_loop_s_thread_is_asked_not_the_one_that_loads_ahead() -> None:
    made = Kineto()
    made.step(0, 0, 100)
    made.loader(1, 10)
    made.op("aten::mm", 20, 50)
    made.loader(0, 90, tid=HOST + 1)
    assert measured(made).wait_ns == 10 * US


def test_no_loader_record_is_not_measured() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 5)
    assert waited(made) is None


def test_a_loader_elsewhere_is_measured_as_no_wait_here() -> None:
    made = Kineto()
    epoch(made, 0, 2)
    found = measured(made, Range(start=5_000 * US, end=6_000 * US))
    assert (found.wait_ns, found.batches) == (0, 0)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", True),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", True),
        ("workbench.input", True),
        ("[_TrainingEpochLoop].train_dataloader_next", True),
        ("## load_batch ##", True),
        ("data_loading", True),
        ("## wait_for_batch ##", False),
        ("## copy_batch_to_gpu ##", False),
        ("aten::native_batch_norm", False),
        ("forward", False),
    ],
)
def test_names_of_input(name: str, answer: bool) -> None:
    assert is_input(name) is answer
