"""The tree of modules: host time, and device time of the forward and the backward pass."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.communication_names import is_communication
from workbench.analysis.launches import join_launches
from workbench.analysis.modules import MODULE_COLUMNS, module_table
from workbench.analysis.ranges import Range
from workbench.trace import read

AUTOGRAD = 200


def table(made: Kineto, span: Range | None = None) -> pd.DataFrame:
    trace = columns(made)
    found = module_table(trace, join_launches(trace), span)
    assert found is not None
    return found


def model() -> Kineto:
    """Net (0-100 us) calls Linear_0 (10-40) and Linear_1 (50-90); kernels of 20 and 30 us.

    The backward pass of Linear_1 runs for 50 us on the autograd thread's launch.
    """
    made = Kineto(gpu=True)
    made.python("nn.Module: Net_0", 0, 100, ident=1, parent=None)
    made.python("nn.Module: Linear_0", 10, 30, ident=2, parent=1)
    made.python("nn.Module: Linear_1", 50, 40, ident=3, parent=1)
    made.op("aten::linear", 12, 20, **{"Sequence number": 1})
    made.launched("gemm", call=(15, 3), kernel=(120, 20), correlation=1)
    made.op("aten::linear", 52, 20, **{"Sequence number": 2})
    made.launched("gemm", call=(55, 3), kernel=(140, 30), correlation=2)
    node = "autograd::engine::evaluate_function: AddmmBackward0"
    made.op(node, 200, 30, tid=AUTOGRAD, **{"Sequence number": 2, "Fwd thread id": 1})
    made.op("AddmmBackward0", 201, 28, tid=AUTOGRAD, **{"Sequence number": 2, "Fwd thread id": 1})
    made.launched("gemm", call=(205, 3), kernel=(220, 50), correlation=3, tid=AUTOGRAD)
    return made


def test_a_child_stands_behind_its_parent_the_longest_first() -> None:
    made = table(model())
    assert tuple(made.columns) == MODULE_COLUMNS
    assert made["path"].tolist() == ["Net_0", "Net_0 > Linear_1", "Net_0 > Linear_0"]
    assert made["depth"].tolist() == [0, 1, 1]


def test_self_time_leaves_children_out() -> None:
    """100 us less 30 and 40."""
    made = table(model()).set_index("module")
    assert (made["host_self_ns"] // US).to_dict() == {"Net_0": 30, "Linear_1": 40, "Linear_0": 30}


def test_device_work_counts_in_every_enclosing_module() -> None:
    made = table(model()).set_index("module")
    assert (made["device_ns"] // US).to_dict() == {"Net_0": 50, "Linear_1": 30, "Linear_0": 20}
    assert made["device_self_ns"]["Net_0"] == 0


def test_work_of_the_backward_pass_goes_to_the_module_that_its_node_answers() -> None:
    made = table(model()).set_index("module")
    assert (made["backward_ns"] // US).to_dict() == {"Net_0": 50, "Linear_1": 50, "Linear_0": 0}


def test_of_operators_with_one_sequence_number_the_last_is_answered() -> None:
    """Operators that record no node carry the number of the next one that does."""
    made = model()
    made.op("aten::view", 20, 2, **{"Sequence number": 2})
    found = table(made).set_index("module")
    assert found["backward_ns"]["Linear_0"] == 0


def test_a_module_called_twice_is_one_row() -> None:
    made = model()
    made.python("nn.Module: Net_0", 300, 50, ident=9, parent=None)
    found = table(made).set_index("module")
    assert found["calls"]["Net_0"] == 2
    assert table(made, Range(start=0, end=200 * US)).set_index("module")["calls"]["Net_0"] == 1


def test_the_same_module_in_two_places_is_two_rows() -> None:
    made = Kineto()
    for at, outer in ((0, "A_0"), (100, "B_0")):
        made.python(f"nn.Module: {outer}", at, 50, ident=at + 1, parent=None)
        made.python("nn.Module: Shared_0", at + 10, 20, ident=at + 2, parent=at + 1)
    found = table(made)
    assert sorted(found["path"]) == ["A_0", "A_0 > Shared_0", "B_0", "B_0 > Shared_0"]


def test_without_a_device_device_time_is_not_measured() -> None:
    made = Kineto()
    made.python("nn.Module: Net_0", 0, 100, ident=1, parent=None)
    assert table(made)["device_ns"].isna().all()


def test_a_trace_without_modules_has_no_table() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 10)
    trace = columns(made)
    assert module_table(trace, join_launches(trace), None) is None


@pytest.mark.traces
def test_backward_pass_of_a_checkpointed_resnet(traces_root: Path) -> None:
    """Of the compute that was launched, most is forward, recomputed or backward of some module.

    Roots: the wrapped model, and the stages that checkpointing calls again on the engine's thread.
    Of the rest the optimizer and the reducer's copies are in no module.
    """
    (path,) = traces_root.glob("AMD-AGI__TraceLens/*resnet_act_checkpoint*")
    trace = read(path)
    launches = join_launches(trace)
    found = module_table(trace, launches, None)
    assert found is not None
    roots = found[found["depth"] == 0].set_index("module")
    spoken = np.isin(trace.events.name, trace.name_codes(is_communication))
    work = trace.events.dur[(launches.launch >= 0) & ~spoken].sum()
    spent = roots["device_ns"].sum() + roots["backward_ns"].sum()
    assert 0.8 * work < spent <= work
    assert roots["backward_ns"].idxmax() == "DistributedDataParallel_0"
    children = found[found["depth"] == 1]
    assert children["backward_ns"].sum() <= roots["backward_ns"].sum()
