"""What people met in practice, as traces by hand: which cause do the device's idle times get?

Steps last 10 ms and their kernels are named ``k``; all times here are microseconds.
"""

import numpy as np

from tests.analysis.idle_cases import causes, explained
from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.causes import CAUSE_CODE
from workbench.analysis.idle import Idle

STEP = 10_000
STEPS = range(1, 5)


def names(made: Kineto, rows: np.ndarray) -> set[str]:
    """The names of event rows, those of nothing left out."""
    trace = columns(made)
    return {trace.names[trace.events.name[row]] for row in rows.tolist() if row >= 0}


def per_step(idle: Idle, cause: str) -> dict[int, float]:
    """Microseconds of a cause in each step that has any."""
    pieces = idle.pieces
    these = pieces.cause == CAUSE_CODE[cause]
    found: dict[int, float] = {}
    for step, start, end in zip(
        pieces.step[these].tolist(), pieces.start[these], pieces.end[these], strict=True
    ):
        found[step] = found.get(step, 0) + int(end - start) / US
    return found


# Reading the loss every step: the wait is the same, what it costs is not.


def reading_the_loss(*, host_after: float) -> Kineto:
    """A kernel of 9 ms a step, read by the host 5 ms before its end; then so long host work."""
    made = Kineto(gpu=True)
    for step in STEPS:
        at = step * STEP
        made.step(step, at, STEP - 1)
        made.launched("k", call=(at, 5), kernel=(at + 10, 9_000), correlation=10 * step)
        if host_after < 1:  # the next kernel is queued before the host waits
            made.launched(
                "k", call=(at + 20, 5), kernel=(at + 9_011, 998), correlation=10 * step + 1
            )
        made.op("aten::item", at + 4_000, 5_020)
        made.runtime("cudaStreamSynchronize", at + 4_010, 5_000, correlation=10 * step + 2)
        if host_after >= 1:
            call = at + 9_010 + host_after
            made.launched("k", call=(call, 5), kernel=(call + 10, 10), correlation=10 * step + 3)
    return made


def test_a_wait_beside_a_busy_device_costs_nothing() -> None:
    """Every kernel is queued in time and begins 1 us after the last: 4 + 3 gaps of spacing."""
    assert causes(explained(reading_the_loss(host_after=0))) == {"kernel_gap": 4 + 3}


def test_the_same_wait_costs_the_gap_that_follows_it() -> None:
    """900 us of host work behind each read, which had held the host for 5 ms."""
    idle = explained(reading_the_loss(host_after=900))
    assert per_step(idle, "synchronization") == dict.fromkeys(STEPS, 900.0)


# Boolean masks: the size of the result must reach the host.


def test_a_hidden_wait_is_named_by_its_operator() -> None:
    """``aten::index`` calls ``aten::nonzero``, which copies and waits; 1 ms of host follows."""
    made = Kineto(gpu=True)
    made.launched("k", call=(0, 5), kernel=(10, 2_000), correlation=1)
    made.op("aten::index", 20, 3_100)
    made.op("aten::nonzero", 30, 2_100)
    made.runtime("cudaMemcpyAsync", 40, 10, correlation=2)
    made.kernel("Memcpy DtoH (Device -> Pageable)", 2_012, 2, correlation=2, cat="gpu_memcpy")
    made.runtime("cudaStreamSynchronize", 60, 1_960, correlation=3)
    made.launched("k", call=(3_020, 5), kernel=(3_030, 10), correlation=4)
    idle = explained(made)
    waits = idle.pieces.cause == CAUSE_CODE["synchronization"]
    assert causes(idle) == {"synchronization": 6 + 1_000, "launch": 10, "kernel_gap": 2}
    assert "aten::nonzero" in names(made, idle.pieces.operator[waits])
    assert names(made, idle.pieces.host[waits]) == {"cudaStreamSynchronize"}


# An optimizer of many small launches.


def test_an_optimizer_of_small_launches_is_host_time_of_operators() -> None:
    """200 parameters, each 20 us of operator with a launch of 5 us for a kernel of 2 us."""
    made = Kineto(gpu=True)
    made.launched("k", call=(0, 5), kernel=(10, 80), correlation=1)
    made.range("Optimizer.step#AdamW.step", 90, 4_020)
    for i in range(200):
        at = 100 + 20 * i
        made.op("aten::add_", at, 18)
        made.launched("k", call=(at + 8, 5), kernel=(at + 15, 2), correlation=10 + i)
    # Of each 20 us the kernel takes 2; from the call's start to the kernel's 7 are launch.
    assert causes(explained(made)) == {"host_operators": 18 + 199 * 11, "launch": 200 * 7}


# Recompiling for every new shape, then no more.


def test_recompiling_is_compilation_in_the_steps_that_did() -> None:
    """Steps 1 and 2 compile for 4 ms with operators and Python inside; steps 3 and 4 run."""
    made = Kineto(gpu=True)
    made.launched("k", call=(0, 5), kernel=(10, STEP), correlation=1)
    for step in STEPS:
        at = step * STEP
        made.step(step, at, STEP - 1)
        if step < 3:
            made.op("_compile.compile_inner (dynamo_timed)", at + 1_000, 4_000)
            made.op("aten::empty", at + 2_000, 100)
        made.op("Torch-Compiled Region: 0/0", at + 6_000, 3_000)
        made.launched("k", call=(at + 6_100, 5), kernel=(at + 6_110, 3_890), correlation=2 + step)
    assert per_step(explained(made), "compilation") == {1: 4_000.0, 2: 4_000.0}


# A telemetry callback every other step.


def test_telemetry_is_host_time_with_its_period_and_its_frame() -> None:
    """Steps 2 and 4 copy a histogram into pageable memory, which holds the host for 100 us."""
    made = Kineto(gpu=True)
    made.python("train.py(1): main", 0, 6 * STEP, ident=1, parent=None)
    made.launched("k", call=(0, 5), kernel=(10, STEP), correlation=1)
    for step in STEPS:
        at = step * STEP
        made.step(step, at, STEP - 1)
        made.launched("k", call=(at + 10, 5), kernel=(at + 20, 4_000), correlation=10 * step)
        if step % 2 == 0:
            made.python("telemetry.py(7): log_histogram", at + 3_920, 3_600, ident=step, parent=1)
            made.runtime("cudaMemcpyAsync", at + 3_930, 100, correlation=10 * step + 1)
            made.kernel(
                "Memcpy DtoH (Device -> Pageable)",
                at + 4_021,
                4,
                correlation=10 * step + 1,
                cat="gpu_memcpy",
            )
        made.launched(
            "k", call=(at + 7_600, 5), kernel=(at + 7_610, 2_400), correlation=10 * step + 2
        )
    idle = explained(made)
    # The copy ends at 4,025; the call returns at 4,030 and excuses 95 us: the host had waited
    # from 3,930. Then the callback and the loop have the time until 7,600.
    assert per_step(idle, "synchronization") == {2: 100.0, 4: 100.0}
    python = per_step(idle, "host_python")
    assert python[2] == python[4] == 7_600 - 4_125
    callback = idle.pieces.source[idle.pieces.step == 2]
    assert "telemetry.py(7): log_histogram" in names(made, callback)


# Emptying the cache in every step, against allocating in the first only.


def allocating(*, every_step: bool) -> Kineto:
    made = Kineto(gpu=True)
    made.launched("k", call=(0, 5), kernel=(10, STEP), correlation=1)
    for step in STEPS:
        at = step * STEP
        made.step(step, at, STEP - 1)
        if every_step or step == 1:
            for i in range(8):
                made.runtime("cudaFree", at + 1_000 + 400 * i, 300, correlation=100 * step + i)
                made.runtime(
                    "cudaMalloc", at + 1_300 + 400 * i, 50, correlation=100 * step + 20 + i
                )
        made.launched(
            "k", call=(at + 5_000, 5), kernel=(at + 5_010, STEP - 5_000), correlation=1 + step
        )
    return made


def test_emptying_the_cache_costs_every_step() -> None:
    """8 releases of 300 us and 8 requests of 50 us a step; the first step is no steady state."""
    idle = explained(allocating(every_step=True))
    assert per_step(idle, "allocation") == dict.fromkeys(STEPS, 8 * 350.0)
    assert idle.first_use == 8 * 350 * US


def test_allocating_in_the_first_step_only_is_first_use() -> None:
    idle = explained(allocating(every_step=False))
    assert per_step(idle, "allocation") == {1: 8 * 350.0}
    assert idle.first_use == 8 * 350 * US


# One launch of a graph of a thousand kernels.


def test_a_graph_of_a_thousand_kernels_is_not_launch_bound() -> None:
    """Kernels of 2 us, 1 us apart, all of one call that returned before the first."""
    made = Kineto(gpu=True)
    made.runtime("cudaGraphLaunch", 0, 20, correlation=1)
    for i in range(1_000):
        made.kernel("k", 30 + 3 * i, 2, correlation=1)
    assert causes(explained(made)) == {"kernel_gap": 999}
