"""Launches and their queue over time: how many wait, how late work begins, how short it is."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.columns import taken
from workbench.analysis.launch_calls import LaunchCalls, launch_calls_of, short_share
from workbench.analysis.launch_table import launch_table
from workbench.analysis.launches import join_launches
from workbench.analysis.queue_length import QueueLength, queue_lengths
from workbench.analysis.ranges import Range
from workbench.analysis.steps import find_steps
from workbench.trace import read
from workbench.trace.table import Trace


def calls_of(trace: Trace, device: int = 0) -> LaunchCalls:
    launches = join_launches(trace)
    return launch_calls_of(trace, launches, find_steps(trace, launches), device)


def queues_of(made: Kineto) -> tuple[QueueLength, ...]:
    trace = columns(made)
    return queue_lengths(trace, join_launches(trace), 0)


def running_ahead() -> Kineto:
    """Calls at 0, 10, 20 and 30 us of 5 us each; kernels of 50 us begin at 8, 58, 108 and 158."""
    made = Kineto()
    for i in range(4):
        made.launched("k", call=(10 * i, 5), kernel=(8 + 50 * i, 50), correlation=i + 1)
    return made


def test_a_queue_grows_with_calls_and_shrinks_with_starts() -> None:
    whole, stream = queues_of(running_ahead())
    assert (whole.stream, stream.stream) == (None, 7)
    assert (whole.at // US).tolist() == [0, 8, 10, 20, 30, 58, 108, 158]
    assert whole.length.tolist() == [1, 0, 1, 2, 3, 2, 1, 0]


def test_mean_and_maximum_of_a_stretch() -> None:
    """0-40 us: 8 x 1 + 2 x 0 + 10 x 1 + 10 x 2 + 10 x 3 = 68; 2 of 40 us nothing waits."""
    whole, _ = queues_of(running_ahead())
    span = Range(start=0, end=40 * US)
    assert whole.mean(span) == pytest.approx(68 / 40)
    assert whole.most(span) == 3
    assert whole.empty_share(span) == pytest.approx(2 / 40)


def test_a_stretch_takes_the_length_at_its_begin_with_it() -> None:
    """At 40 three wait, until 58 us; then two."""
    whole, _ = queues_of(running_ahead())
    edges = np.array([40, 58, 78]) * US
    assert whole.means(edges).tolist() == [3.0, 2.0]
    assert whole.maxima(edges).tolist() == [3, 2]


def test_before_the_first_launch_nothing_waits() -> None:
    made = running_ahead()
    made.op("aten::mm", -100, 5)
    whole, _ = queues_of(made)
    assert whole.mean(Range(start=0, end=100 * US)) == 0.0


def test_a_graph_is_one_entry_until_its_first_kernel_begins() -> None:
    made = Kineto()
    made.runtime("cudaGraphLaunch", 0, 5, correlation=1)
    for i in range(100):
        made.kernel("k", 10 + i, 1, correlation=1)
    whole, _ = queues_of(made)
    assert ((whole.at // US).tolist(), whole.length.tolist()) == ([0, 10], [1, 0])


def test_clocks_that_do_not_compare_give_no_queue() -> None:
    made = Kineto()
    made.launched("k", call=(5_000, 5), kernel=(300, 10), correlation=3)
    assert queues_of(made) == ()


def test_delay_runs_from_the_end_of_the_call_to_the_first_kernel() -> None:
    """Ends at 5, 15, 25, 35; starts at 8, 58, 108, 158."""
    found = calls_of(columns(running_ahead()))
    assert (found.delay_ns // US).tolist() == [3, 43, 83, 123]


def test_work_that_begins_inside_its_call_has_no_delay() -> None:
    made = Kineto()
    made.launched("k", call=(0, 20), kernel=(8, 50), correlation=1)
    assert calls_of(columns(made)).delay_ns.tolist() == [0]


def test_a_short_kernel_takes_the_host_longer_than_the_device() -> None:
    """5 us of calling for 3 us of work is short, for 50 us it is not."""
    made = Kineto()
    made.launched("tiny", call=(0, 5), kernel=(8, 3), correlation=1)
    made.launched("large", call=(20, 5), kernel=(28, 50), correlation=2)
    assert calls_of(columns(made)).short.tolist() == [True, False]


def test_a_graph_is_as_long_as_all_its_kernels() -> None:
    """Ten kernels of 1 us for a call of 5 us: not short, though each of them is."""
    made = Kineto()
    made.runtime("cudaGraphLaunch", 0, 5, correlation=1)
    for i in range(10):
        made.kernel("k", 10 + i, 1, correlation=1)
    found = calls_of(columns(made))
    assert (len(found), found.kernels.tolist(), found.graph.tolist()) == (1, [10], [True])
    assert found.short.tolist() == [False]


def test_copies_alone_are_no_launches_of_kernels() -> None:
    made = Kineto()
    made.runtime("cudaMemcpyAsync", 0, 2, correlation=9)
    made.kernel("Memcpy HtoD (Pinned -> Device)", 3, 5, correlation=9, cat="gpu_memcpy")
    assert len(calls_of(columns(made))) == 0


def test_the_table_counts_the_launches_of_each_step() -> None:
    """Two launches in step 1, three in step 2, one after the steps."""
    made = Kineto()
    made.step(1, 0, 100)
    made.step(2, 100, 100)
    for i, ts in enumerate((10, 20, 110, 120, 130, 300)):
        made.launched("k", call=(ts, 2), kernel=(ts + 5, 4), correlation=i + 1)
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    calls = launch_calls_of(trace, launches, steps, 0)
    window = Range(start=0, end=200 * US)
    queues = [queue.summary(window) for queue in queue_lengths(trace, launches, 0)]
    table = launch_table(calls, queues, 0, 2)
    row = table.iloc[0]
    assert (row["calls"], row["per_step"]) == (5, 2.5)
    assert (row["per_step_least"], row["per_step_most"]) == (2, 3)
    assert row["delay_median_ns"] == 3 * US
    assert (row["short_calls"], row["short_share"]) == (0, 0.0)
    assert table["stream"].isna().tolist() == [True, False]


@pytest.mark.traces
def test_delays_and_short_kernels_of_a_real_trace_by_pandas_alone(traces_root: Path) -> None:
    """The resnet of torchrec, read with json: a merge of calls and kernels by correlation."""
    (path,) = traces_root.glob("pytorch__torchrec/*log__resnet18*85866*")
    raw = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"])
    raw = raw[raw["ph"] == "X"]
    raw["corr"] = [args.get("correlation") if isinstance(args, dict) else None for args in raw.args]
    kernels = raw[raw["cat"] == "kernel"]
    calls = raw[raw["cat"].isin(["cuda_runtime", "cuda_driver"])]
    both = kernels.merge(calls, on="corr", suffixes=("", "_call"))
    offset = max(0, 2 - (both.ts - both.ts_call).min())  # metrics.md: Clock first
    delay = (both.ts + offset - both.ts_call - both.dur_call).clip(lower=0)
    found = calls_of(read(path))
    assert len(found) == len(both)
    assert int(found.short.sum()) == int((both.dur_call > both.dur).sum())
    assert np.sort(found.delay_ns).tolist() == np.sort(delay * US).astype(int).tolist()


@pytest.mark.traces
def test_the_queue_of_cuda_holds_1024_launches(traces_root: Path) -> None:
    """A host that runs ahead stops when the driver's queue of 1024 is full (ns_resolution)."""
    (path,) = traces_root.glob("facebookresearch__HolisticTraceAnalysis/*ns_resolution*")
    trace = read(path)
    launches = join_launches(trace)
    whole = queue_lengths(trace, launches, 0)[0]
    assert 1000 < whole.length.max() <= 1024 + 2
    assert whole.length[-1] == 0


@pytest.mark.traces
def test_launch_delay_of_an_mtia_agrees_with_the_other_tool(traces_root: Path) -> None:
    """HTA: the launch of correlation 423 took 435.2 us for 124.768 us of work, without delay."""
    (path,) = traces_root.glob("facebookresearch__HolisticTraceAnalysis/*mtia_rank_0*")
    trace = read(path)
    launches = join_launches(trace)
    rows = np.flatnonzero((trace.events.correlation == 423) & (launches.launch >= 0))
    device = int(trace.events.device[rows[0]])
    found = launch_calls_of(trace, launches, None, device)
    (at,) = np.flatnonzero(found.row == launches.launch[rows[0]])
    assert int(found.end[at] - found.start[at]) == 435_200
    assert found.delay_ns[at] == 0


def test_the_share_of_short_calls_is_of_kernels_in_the_steps_that_count() -> None:
    """Calls of 5 us; the step holds kernels of 3 and 8 us and a copy of 1: one kernel of two."""
    made = Kineto(gpu=True)
    made.step(0, 0, 100)
    made.launched("before", call=(-50, 5), kernel=(-40, 1), correlation=1)
    made.launched("short", call=(10, 5), kernel=(20, 3), correlation=2)
    made.launched("long", call=(30, 5), kernel=(40, 8), correlation=3)
    made.runtime("cudaMemcpyAsync", 60, 5, correlation=4)
    made.kernel("Memcpy HtoD (Pinned -> Device)", 70, 1, correlation=4, cat="gpu_memcpy")
    trace = columns(made)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    assert short_share(launch_calls_of(trace, launches, steps, 0), steps) == 0.5
    assert short_share(taken(calls_of(trace), np.zeros(3, bool)), steps) is None
