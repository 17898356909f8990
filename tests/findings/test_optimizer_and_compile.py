"""WB205, WB207 and WB208: one operator a parameter, compiling again, and shapes seen first."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import workbench as wb
from tests.findings.loops import Loop, fired, looped, of
from tests.kineto import Kineto
from workbench.analysis.compilations import Compilations
from workbench.findings.finding import Facts
from workbench.findings.recompiles import recompiles
from workbench.findings.unbatched_optimizer import unbatched_optimizer
from workbench.run.facts import gather

US = 1_000
MS = 1_000_000


def updating(loop: Loop, at: float, *, forward: float = 490, name: str = "aten::add_") -> None:
    """A forward kernel, then 100 parameters from 500 on, each 5 µs of host for 1 µs of device."""
    loop.launch("gemm", call=(at, 5), kernel=(at + 10, forward))
    loop.trace.range("Optimizer.step#SGD.step", at + 500, 500)
    for each in range(100):
        start = at + 500 + 5 * each
        loop.trace.op(name, start, 5)
        loop.launch("add_kernel", call=(start + 1, 2), kernel=(max(start + 3.5, at), 1))


def queued(loop: Loop, at: float) -> None:
    """The same host work behind a device that is busy: its kernels run from 1000 - 90 on."""
    loop.launch("gemm", call=(at, 5), kernel=(at + 10, 900))
    loop.trace.range("Optimizer.step#SGD.step", at + 500, 400)
    for each in range(100):
        start = at + 500 + 4 * each
        loop.trace.op("aten::add_", start, 4)
        loop.launch("add_kernel", call=(start + 1, 2), kernel=(at + 910 + each, 1))


def test_an_update_a_parameter_is_told_with_the_bound_of_the_whole_step(tmp_path: Path) -> None:
    """500 µs of host, but the device idles only 410: 400 between the updates, 10 behind them.

    The 100 µs of its hundred kernels can go as well: one call takes less of the device, too.
    """
    finding = fired(looped(updating, 1000).run(tmp_path), "WB205")
    assert finding.evidence["single_tensor_operators_per_step"] == 100
    assert finding.evidence["host_us_per_step"] == 500
    assert finding.evidence["device_us_per_step"] == pytest.approx(100)
    assert finding.saving_ns_per_step_at_most == pytest.approx(510 * US)
    assert finding.share_of_window == pytest.approx(0.41)
    assert "torch.optim.SGD(..., fused=True (or foreach=True))" in finding.advice


def test_a_step_that_trains_the_model_in_a_closure_is_not_called_unbatched(tmp_path: Path) -> None:
    """LBFGS: the same operators, with a node of backward among them on another thread."""

    def closure(loop: Loop, at: float) -> None:
        updating(loop, at)
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        loop.trace.op(name, at + 600, 50, tid=2)

    assert of(looped(closure, 1000).run(tmp_path), "WB205") is None


def test_a_batched_optimizer_is_silent(tmp_path: Path) -> None:
    def batched(loop: Loop, at: float) -> None:
        updating(loop, at, name="aten::_foreach_add_")

    assert of(looped(batched, 1000).run(tmp_path), "WB205") is None


def test_a_fused_optimizer_that_counts_its_steps_one_by_one_is_batched(tmp_path: Path) -> None:
    """On a CPU ``_foreach_add_`` on the counters of steps is an ``add_`` for each parameter."""

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::mm", at, 400)
        loop.trace.range("Optimizer.step#AdamW.step", at + 500, 400)
        loop.trace.op("aten::_foreach_add_", at + 500, 210)
        for each in range(100):
            loop.trace.op("aten::add_", at + 500 + 2 * each, 1)
        loop.trace.op("aten::_fused_adamw_", at + 720, 100)

    assert of(looped(body, 1000, gpu=False).run(tmp_path), "WB205") is None


def test_an_optimizer_behind_a_full_queue_costs_the_step_nothing(tmp_path: Path) -> None:
    """H05: 400 µs of host for 100 of device, and yet the device never waits for it."""
    run = looped(queued, 1015).run(tmp_path)
    assert gather(run.ranks[0], None).optimizer is not None
    assert of(run, "WB205") is None


@pytest.mark.parametrize(("took", "fires"), [(300, True), (90, False)])
def test_on_the_cpu_the_optimizers_share_decides(tmp_path: Path, took: int, fires: bool) -> None:
    def on_cpu(loop: Loop, at: float) -> None:
        loop.trace.range("Optimizer.step#AdamW.step", at + 100, took)
        for each in range(60):
            loop.trace.op("aten::mul_", at + 100 + each, 1)

    finding = of(looped(on_cpu, 1000, gpu=False).run(tmp_path), "WB205")
    assert (finding is not None) == fires
    if finding is not None:
        assert finding.share_of_window == pytest.approx(0.3)
        assert "fused=True" in finding.advice


def test_without_causes_the_optimizer_is_not_blamed(tmp_path: Path) -> None:
    from workbench.trace.table import Violation

    facts = gather(looped(updating, 1000).run(tmp_path).ranks[0], None)
    lost = Violation(code="clock", message="", voids=("causes", "queue"))
    assert unbatched_optimizer(replace(facts, violations=(lost,))) is None


def compiling(*steps: int) -> Loop:
    """A loop on the CPU that compiles for 400 of 1000 µs in the given steps."""

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::mm", at, 300)
        if at / 1000 in steps:
            loop.trace.op("entire_frame_compile (dynamo_timed)", at + 400, 400)

    return looped(body, 1000, steps=10, gpu=False)


def test_compiling_in_later_steps_is_told_with_its_time(tmp_path: Path) -> None:
    """Steps 3, 5 and 7 of ten: 1200 of 10 000 µs."""
    finding = fired(compiling(0, 3, 5, 7).run(tmp_path), "WB207")
    assert "3 of 9 steps" in finding.title
    assert finding.share_of_window == pytest.approx(0.12)


@pytest.mark.parametrize("steps", [(0,), (3,)], ids=["warm-up", "a late first use"])
def test_compiling_once_is_silent(tmp_path: Path, steps: tuple[int, ...]) -> None:
    assert of(compiling(*steps).run(tmp_path), "WB207") is None


def counted(**counts: Any) -> Facts:
    told = {"graphs": 1, "graph_breaks": 0, "recompiles": 0, "limit_reached": 0, "seconds": 3.0}
    return Facts(compilation=told | counts)


def test_the_recompile_limit_is_said_although_torch_goes_on_silently() -> None:
    """H06: eight variants of one function, then uncompiled."""
    finding = recompiles(counted(graphs=8, recompiles=7, limit_reached=1))
    assert finding is not None
    assert finding.severity == "critical"
    assert "uncompiled" in finding.title
    named = [
        {
            "function": "forward (net.py:12)",
            "compilations": 8,
            "last_reason": "tensor 'x' size mismatch at index 0. expected 9, actual 10",
            "limit_reached": True,
            "limit_step": 8,
        }
    ]
    finding = recompiles(counted(graphs=8, recompiles=7, limit_reached=1, functions=named))
    assert finding is not None
    assert "limit reached in step 8: forward (net.py:12) was compiled 8 times" in finding.title
    assert "expected 9, actual 10" in finding.title, "the last guard that failed"
    late = Compilations(steps=20, steps_with=5, count=5, ns=5 * 30 * MS)
    facts = replace(counted(limit_reached=1), compilations=late, trace_steps=20)
    told = recompiles(replace(facts, trace_window_ns=20 * 10 * MS))
    assert told is not None
    assert told.saving_ns_per_step_at_most is None, "what compiled code would gain is not known"


def test_one_recompilation_is_how_torch_learns_that_a_size_changes() -> None:
    assert recompiles(counted(graphs=2, recompiles=1)) is None
    finding = recompiles(counted(graphs=6, recompiles=5))
    assert finding is not None
    assert "dynamic=True" in finding.advice


def test_breaks_of_the_graph_are_a_note() -> None:
    finding = recompiles(counted(graphs=3, graph_breaks=2))
    assert finding is not None
    assert (finding.severity, "3 pieces" in finding.title) == ("info", True)


def test_nothing_compiled_is_silent() -> None:
    assert recompiles(Facts()) is None
    assert recompiles(counted(graphs=0, seconds=0)) is None


def meeting(times: list[tuple[int, float]]) -> Kineto:
    """Steps on the CPU: the size of each one's input, and how long it takes in milliseconds."""
    trace, at = Kineto(), 0.0
    for number, (size, ms) in enumerate(times):
        trace.step(number, at, ms * 1000)
        trace.op("aten::conv2d", at, ms * 1000 - 1, **{"Input Dims": [[8, 3, size, size]]})
        at += ms * 1000
    return trace


SIZES = [400, 500, 600, 700]


def test_first_sight_of_a_shape_is_slow(tmp_path: Path) -> None:
    """H08: 22 ms a step, and 72 the first time; the very first step counts as warm-up.

    Of eleven steps three meet a new shape and take 50 ms more: 150 of 392 ms.
    """
    seen = [(size, 72.0) for size in SIZES] + [(size, 22.0) for size in SIZES * 2]
    run = wb.open(meeting(seen).write(tmp_path / "t.json"))
    finding = fired(run, "WB208")
    assert "3 of 11 steps saw a new shape" in finding.title
    assert finding.evidence["first_to_later_ratio"] == pytest.approx(72 / 22)
    assert finding.share_of_window == pytest.approx(150 / 392)
    assert "cudnn.benchmark" in finding.advice


@pytest.mark.parametrize(
    "seen",
    [
        [(size, size / 10) for size in SIZES * 3],
        [(400 + 10 * number, 20.0 + 5 * number) for number in range(12)],
        [(400, 72.0)] + [(400, 22.0)] * 11,
    ],
    ids=["larger is slower", "no shape comes twice", "one shape"],
)
def test_size_alone_is_no_search(tmp_path: Path, seen: list[tuple[int, float]]) -> None:
    assert of(wb.open(meeting(seen).write(tmp_path / "t.json")), "WB208") is None


def test_h08_as_a_library_does_that_searches_for_each_new_size(tmp_path: Path) -> None:
    """A layer that sleeps 50 ms whenever it meets a size for the first time: each comes twice."""
    known, layer = set[int](), torch.nn.Linear(4, 2)
    with wb.capture(tmp_path / "run", warmup=1, steps=12) as cap:
        for number in range(15):
            size = 8 + number // 2
            if size not in known:
                known.add(size)
                time.sleep(0.05)
            layer(torch.ones(size, 4)).sum().item()
            cap.step()
    finding = fired(cap.run, "WB208")
    assert "saw a new shape" in finding.title
    assert finding.evidence["first_to_later_ratio"] > 5
    assert finding.saving_ns_per_step_at_most is not None
    assert finding.saving_ns_per_step_at_most > 15 * MS
