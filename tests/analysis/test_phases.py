"""Forward, backward and optimizer: host time, device time, launches and operators."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.phases import PHASE_COLUMNS, Ranges, phase_table
from workbench.analysis.steps import find_steps
from workbench.trace import read
from workbench.trace.table import Trace

AUTOGRAD = 200


def table(trace: Trace) -> pd.DataFrame:
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    if steps is None:
        everything = np.array([0]), np.array([int(trace.events.end.max())])
        made = phase_table(trace, launches, Ranges(*everything, 0))
    else:
        made = phase_table(trace, launches, Ranges(steps.start, steps.end, len(steps)))
    assert made is not None
    return made.set_index("phase")


def training_step() -> Kineto:
    """A step of 100 us: 10 forward, 30 backward on its own thread, 20 optimizer, 8 waiting.

    Kernels of 5 us in forward, twice 10 us in backward, 2 us in the optimizer.
    """
    made = Kineto(gpu=True)
    made.step(1, 0, 100)
    made.loader(1, 8)
    made.op("aten::mm", 10, 10, **{"Sequence number": 7})
    made.launched("gemm", call=(12, 3), kernel=(16, 5), correlation=1)
    node = "autograd::engine::evaluate_function: MmBackward0"
    made.op(node, 30, 30, tid=AUTOGRAD, **{"Sequence number": 7, "Fwd thread id": 1})
    made.op("MmBackward0", 31, 28, tid=AUTOGRAD, **{"Sequence number": 7, "Fwd thread id": 1})
    for i, ts in enumerate((32, 42)):
        made.op("aten::mm", ts, 8, tid=AUTOGRAD)
        made.launched(
            "gemm", call=(ts + 1, 3), kernel=(ts + 5, 10), correlation=2 + i, tid=AUTOGRAD
        )
    made.range("Optimizer.step#SGD.step", 70, 20)
    made.op("aten::_foreach_add_", 72, 10)
    made.launched("add", call=(74, 3), kernel=(79, 2), correlation=4)
    return made


def test_host_time_sums_to_the_step() -> None:
    made = table(columns(training_step()))
    assert (made["host_ns"] // US).to_dict() == {
        "input": 8,
        "forward": 10,
        "backward": 30,
        "optimizer": 20,
        "other": 32,
    }


def test_device_work_belongs_to_the_phase_that_launched_it() -> None:
    made = table(columns(training_step()))
    assert (made["device_ns"] // US).loc[["forward", "backward", "optimizer"]].tolist() == [
        5,
        20,
        2,
    ]
    assert made["launches"].loc[["forward", "backward", "optimizer"]].tolist() == [1, 2, 1]


def test_operators_are_those_called_from_python_or_from_a_node() -> None:
    """Nodes of the engine and the optimizer's range only hold operators, and are none."""
    made = table(columns(training_step()))
    assert made["operators"].loc[["forward", "backward", "optimizer"]].tolist() == [1, 2, 1]


def test_the_engine_rests_while_another_thread_works() -> None:
    """Nodes at 30-60 and 230-260 with a forward pass between them: twice 30 us, not 230."""
    made = training_step()
    made.op("aten::mm", 110, 50)
    node = "autograd::engine::evaluate_function: MmBackward0"
    made.op(node, 230, 30, tid=AUTOGRAD, **{"Sequence number": 8, "Fwd thread id": 1})
    trace = columns(made)
    found = phase_table(trace, join_launches(trace), Ranges(np.array([0]), np.array([300 * US]), 0))
    assert found is not None
    assert found.set_index("phase")["host_ns"]["backward"] == 60 * US


def test_an_operator_inside_another_is_not_counted_again() -> None:
    made = Kineto()
    made.op("aten::linear", 0, 20)
    made.op("aten::linear", 2, 16)
    made.op("aten::addmm", 4, 10)
    assert table(columns(made))["operators"]["other"] == 1


def test_device_work_without_a_launch_is_unknown() -> None:
    made = training_step()
    made.kernel("stray", 50, 7, correlation=99)
    assert table(columns(made))["device_ns"]["unknown"] == 7 * US


def test_without_backward_pass_and_range_nobody_can_tell_forward() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 20)
    found = table(columns(made))
    assert pd.isna(found["host_ns"]["forward"])
    assert pd.isna(found["host_ns"]["input"])
    assert (found["host_ns"]["backward"], found["operators"]["other"]) == (0, 1)


def test_our_own_range_tells_forward() -> None:
    made = Kineto()
    made.range("forward", 0, 30)
    made.op("aten::mm", 5, 20)
    assert table(columns(made))["host_ns"]["forward"] == 30 * US


def test_without_a_device_only_the_host_is_measured() -> None:
    made = Kineto()
    made.op("aten::mm", 0, 20)
    assert table(columns(made))["device_ns"].isna().all()


def test_no_operators_no_table() -> None:
    trace = columns(Kineto())
    nothing = np.empty(0, np.int64)
    assert phase_table(trace, join_launches(trace), Ranges(nothing, nothing, 0)) is None


def test_an_optimizer_of_many_small_launches_shows_as_such() -> None:
    """H05: 300 parameters, three operators each: 900 calls of 150 us for 14 us of work each."""
    made = Kineto(gpu=True)
    made.step(1, 0, 150_000)
    made.op("aten::mm", 1, 10)
    made.range("Optimizer.step#SGD.step", 100, 138_000)
    for i in range(900):
        ts = 110 + 150 * i
        made.op(("aten::mul_", "aten::add_", "aten::add_")[i % 3], ts, 140)
        made.launched("k", call=(ts + 5, 9), kernel=(ts + 20, 14), correlation=i + 1)
    row = table(columns(made)).loc["optimizer"]
    assert (row["host_ns"], row["device_ns"]) == (138_000 * US, 900 * 14 * US)
    assert (row["launches"], row["operators"]) == (900, 900)


def test_the_columns_are_the_documented_ones() -> None:
    trace = columns(training_step())
    made = phase_table(trace, join_launches(trace), Ranges(np.array([0]), np.array([10]), 1))
    assert made is not None
    assert tuple(made.columns) == PHASE_COLUMNS


@pytest.mark.traces
def test_the_optimizer_of_a_real_trace_by_pandas_alone(traces_root: Path) -> None:
    """ResNet-50 in 2021: SGD updates 161 parameters one by one, three launches and more each."""
    (path,) = traces_root.glob("pytorch__kineto/*resnet50_num_workers_0__worker0.162*")
    raw = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"])
    raw = raw[raw["ph"] == "X"]
    raw["corr"] = [a.get("correlation") if isinstance(a, dict) else None for a in raw["args"]]
    kinds = raw["cat"].isin(["Kernel", "Memcpy", "Memset"])
    both = raw[kinds].merge(raw[raw["cat"] == "Runtime"], on="corr", suffixes=("", "_call"))
    ranges = raw[raw["name"].str.match(r"Optimizer\.(step|zero_grad)#", na=False)]
    inside = np.zeros(len(both), bool)
    for start, dur in zip(ranges["ts"], ranges["dur"], strict=True):
        inside |= ((both["ts_call"] >= start) & (both["ts_call"] < start + dur)).to_numpy()
    row = table(read(path)).loc["optimizer"]
    assert row["device_ns"] == both["dur"][inside].sum() * US
    assert row["launches"] == inside.sum()
    assert row["host_ns"] == ranges["dur"].sum() * US
