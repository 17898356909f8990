"""Where every step goes: parts that sum to the step, and over the steps to the window."""

from pathlib import Path

import numpy as np
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.step_breakdown import StepBreakdown
from workbench.run.rank import RankAnalysis
from workbench.trace import read


def analysis(made: Kineto) -> RankAnalysis:
    trace = columns(made)
    return RankAnalysis(source="hand", rank=None, read=lambda: trace)


def only(rank: RankAnalysis) -> StepBreakdown:
    (found,) = rank.details.steps.values()
    return found


def three_steps() -> Kineto:
    """Host steps of 100 us; a kernel in each, the second step waits for data.

    Before them a kernel that ends at 90. The kernels of the steps run 110-150, 280-310, 330-390.
    """
    made = Kineto(gpu=True)
    made.launched("k", call=(10, 5), kernel=(60, 30), correlation=9)
    for number, ts in ((1, 100), (2, 200), (3, 300)):
        made.step(number, ts, 100)
    made.launched("k", call=(102, 4), kernel=(110, 40), correlation=1)
    made.loader(201, 70)
    made.launched("k", call=(272, 4), kernel=(280, 30), correlation=2)
    made.launched("k", call=(302, 4), kernel=(330, 60), correlation=3)
    return made


def test_steps_lie_edge_to_edge_from_completion_to_completion() -> None:
    """The work before the steps ends at 90, that of the steps at 150, 310 and 390."""
    found = only(analysis(three_steps()))
    origin = 10 * US  # times count from the first event
    assert (found.start + origin).tolist() == [90 * US, 150 * US, 310 * US]
    assert found.length.tolist() == [60 * US, 160 * US, 80 * US]


def test_parts_sum_to_every_step_and_over_the_steps_to_the_window() -> None:
    rank = analysis(three_steps())
    found = only(rank)
    known = [values for values in found.parts.values() if values is not None]
    assert sum(known).tolist() == found.length.tolist()
    assert found.summed(np.ones(3, bool)) == rank.breakdown(0)


def test_each_part_stands_in_the_step_that_holds_it() -> None:
    """The second step: 30 us of compute; of its idle time 150-280, 70 us lie in the loader."""
    found = only(analysis(three_steps()))
    compute, waited = found.parts["compute"], found.parts["input"]
    assert compute is not None
    assert waited is not None
    assert compute.tolist() == [40 * US, 30 * US, 60 * US]
    assert waited.tolist() == [0, 70 * US, 0]


def test_what_the_trace_cannot_hold_is_not_measured_in_any_step() -> None:
    found = only(analysis(three_steps()))
    assert found.parts["garbage_collection"] is None
    assert found.parts["exposed_communication_wait"] is None


def test_the_first_step_of_a_device_counts_in_no_mean() -> None:
    """It has no step time: nobody knows when the work before it was complete."""
    assert only(analysis(three_steps())).steady.tolist() == [False, True, True]


def test_a_step_without_work_on_the_device_is_complete_when_the_host_is() -> None:
    """Step 2 launches nothing: its end is the host's, 300, and step 3 begins there."""
    made = Kineto(gpu=True)
    for number, ts in ((1, 100), (2, 200), (3, 300)):
        made.step(number, ts, 100)
    made.launched("k", call=(102, 4), kernel=(110, 40), correlation=1)
    made.launched("k", call=(302, 4), kernel=(330, 60), correlation=3)
    found = only(analysis(made))
    assert found.length.tolist() == [40 * US, 150 * US, 90 * US]


def test_without_a_device_a_step_is_its_host_range() -> None:
    """Two steps of 100 us with 10 us between them; the loader takes 30 us of the second."""
    made = Kineto()
    made.step(1, 0, 100)
    made.op("aten::mm", 10, 50)
    made.step(2, 110, 100)
    made.loader(120, 30)
    made.op("aten::mm", 160, 40)
    rank = analysis(made)
    found = only(rank)
    waited, operators = found.parts["input"], found.parts["other_operators"]
    assert waited is not None
    assert operators is not None
    assert (found.device, found.length.tolist()) == (None, [100 * US, 100 * US])
    assert (waited.tolist(), operators.tolist()) == ([0, 30 * US], [50 * US, 40 * US])
    assert found.steady.all()


def test_no_steps_give_no_breakdown_of_steps() -> None:
    made = Kineto(gpu=True)
    made.launched("k", call=(0, 5), kernel=(10, 20), correlation=1)
    assert analysis(made).details.steps == {}


WITH_STEPS = (
    "facebookresearch__HolisticTraceAnalysis/*ns_resolution*",
    "facebookresearch__HolisticTraceAnalysis/*mixed_files*",
    "facebookresearch__HolisticTraceAnalysis/*nccl_parser*",
    "pytorch__kineto/*resnet50_num_workers_?__worker0.pt*",
    "pytorch__kineto/*resnet50_num_workers_0__worker0.162*",
    "pytorch__torchrec/*sleep_pl*19488*",
    "AMD-AGI__TraceLens/*resnet_act_checkpoint*",
    "KellerJordan__modded-nanogpt/*rank0*",
)


@pytest.mark.traces
@pytest.mark.parametrize("pattern", WITH_STEPS)
def test_real_steps_sum_to_the_nanosecond(traces_root: Path, pattern: str) -> None:
    for path in sorted(traces_root.glob(pattern)):
        trace = read(path)
        rank = RankAnalysis(source=path.name, rank=None, read=lambda trace=trace: trace)
        for device, found in rank.details.steps.items():
            parts = [values for values in found.parts.values() if values is not None]
            assert sum(parts).tolist() == found.length.tolist()
            assert rank.steps is not None
            assert found.length[len(found) - len(rank.steps.time_ns) :].tolist() == (
                rank.steps.time_ns.tolist()
            )
            if device is not None:
                assert found.summed(np.ones(len(found), bool)) == rank.breakdown(device)
