"""WB212: steps that grow, or that are slow every so many; and what is neither."""

import random
import time
from pathlib import Path

import pytest
import torch

import workbench as wb
from tests.findings.loops import fired
from workbench.findings.finding import Facts
from workbench.findings.step_drift import step_drift

MS = 1_000_000


def noisy(count: int = 100, *, seed: int = 0, spread: float = 0.05) -> list[float]:
    """Steps of 10 ms that scatter."""
    chance = random.Random(seed)
    return [10 * MS * chance.lognormvariate(0, spread) for _ in range(count)]


def facts(times: list[float]) -> Facts:
    return Facts(step_ns=tuple(int(ns) for ns in times))


def test_a_callback_every_ten_steps_that_keeps_growing_is_told_twice() -> None:
    """H10: each step 0.05 ms longer than the last, and 10 ms more at every tenth."""
    times = [
        ns + 0.05 * MS * step + (10 * MS if step % 10 == 9 else 0)
        for step, ns in enumerate(noisy())
    ]
    finding = step_drift(facts(times))
    assert finding is not None
    assert finding.evidence["period_steps"] == 10
    assert finding.evidence["growth_us_per_step"] == pytest.approx(50, rel=0.3)
    assert finding.severity == "warning"
    assert "every 10 steps" in finding.advice


def test_what_slow_steps_cost_is_spread_over_all() -> None:
    """A tenth of the steps takes 30 ms instead of 10: 2 ms a step of 12."""
    finding = step_drift(facts([30.0 * MS if step % 10 == 4 else 10.0 * MS for step in range(100)]))
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(2 * MS)
    assert finding.share_of_window == pytest.approx(2 / 12)
    assert not [name for name in finding.evidence if name.startswith("growth")]


def test_bursts_of_workers_are_the_loader_not_the_step() -> None:
    """Three workers deliver three batches at once: every third step of 10 ms waits 20 ms more.

    A loop that logs for 20 ms at every third step has the same step times and no wait: 33 of 100
    such steps cost 6.6 ms a step.
    """
    waits = tuple(20 * MS if step % 3 == 2 else 0 for step in range(100))
    steps = tuple(10 * MS + wait for wait in waits)
    assert step_drift(Facts(step_ns=steps, input_ns=waits)) is None
    finding = step_drift(Facts(step_ns=steps, input_ns=(0,) * 100))
    assert finding is not None
    assert finding.evidence["period_steps"] == 3
    assert finding.saving_ns_per_step_at_most == pytest.approx(6.6 * MS)


def test_growth_counts_by_what_it_adds_to_the_whole_step() -> None:
    """Work of 2 ms that doubles in steps of 100 ms adds 2 %: nothing. In steps of 4 ms it is told.

    There 2 + 2k/99 ms of work and 2 ms of wait: from 2 ms by 100 %, of which 3 of 5 ms are work.
    """
    worked = [2 * MS + 2 * MS * step // 99 for step in range(100)]

    def waiting(wait: int) -> Facts:
        return Facts(step_ns=tuple(ns + wait for ns in worked), input_ns=(wait,) * 100)

    assert step_drift(waiting(98 * MS)) is None
    finding = step_drift(waiting(2 * MS))
    assert finding is not None
    assert finding.evidence["growth_share"] == pytest.approx(3 / 5, rel=0.01)
    assert not {"period_steps", "slow_steps"} & set(finding.evidence)


@pytest.mark.parametrize("seed", range(20))
def test_scatter_is_no_trend(seed: int) -> None:
    assert step_drift(facts(noisy(seed=seed, spread=0.2))) is None


@pytest.mark.parametrize(
    "times",
    [
        [10.0 * MS] * 50 + [14.0 * MS] * 50,
        [10.0 * MS + 1000 * step for step in range(100)],
        [30.0 * MS if step in (7, 19, 20, 61, 90) else 10.0 * MS for step in range(100)],
        [10.0 * MS + MS * step for step in range(15)],
    ],
    ids=["one jump", "one percent", "irregular", "few steps"],
)
def test_what_is_no_drift_is_silent(times: list[float]) -> None:
    assert step_drift(facts(times)) is None


def test_a_pause_between_two_blocks_does_not_hide_the_period() -> None:
    """Five blocks of 17 steps, whose steps 3 and 13 are slow: of nine distances four are 7."""
    block = [10.0 * MS] * 17
    block[3] = block[13] = 40.0 * MS
    steps = tuple(int(ns) for ns in block * 5)
    assert step_drift(Facts(step_ns=steps)) is None
    finding = step_drift(Facts(step_ns=steps, block_steps=(17,) * 5))
    assert finding is not None
    assert finding.evidence["period_steps"] == 10


def test_small_hold_ups_of_a_busy_machine_do_not_hide_large_slow_steps() -> None:
    """Every tenth step takes 40 ms more, six others 6 to 9 ms: those are not half of it."""
    held = {1: 6, 14: 8, 22: 7, 41: 9, 58: 6, 77: 8}
    steps = (10 + (40 if n % 10 == 5 else held.get(n, 0)) for n in range(100))
    finding = step_drift(facts([ms * MS for ms in steps]))
    assert finding is not None
    assert (finding.evidence["period_steps"], finding.evidence["slow_steps"]) == (10, 10)


class Telemetry:
    """A hook that keeps all losses, and sends all of them every ten steps."""

    def __init__(self) -> None:
        self.kept: list[float] = []

    def log(self, loss: float) -> None:
        self.kept.append(loss)
        if len(self.kept) % 10 == 0:
            time.sleep(0.3)


def test_h10_the_line_of_a_hook_is_named_where_stacks_were_recorded(tmp_path: Path) -> None:
    """Steps of 5 ms, and 300 ms more at every tenth: longer than others hold a step up."""
    model, hook = torch.nn.Linear(4, 2), Telemetry()

    def step(model: torch.nn.Module, batch: torch.Tensor) -> None:
        time.sleep(0.005)
        hook.log(model(batch).sum().item())

    work = wb.Workload(model, [torch.ones(2, 4)] * 100, step=step, name="hooked")
    record = wb.Record(stacks=True)
    run = wb.profile(work, steps=40, record=record, folder=tmp_path, progress=False)
    finding = fired(run, "WB212")
    assert finding.evidence["period_steps"] == 10
    assert "test_step_drift.py" in finding.evidence["slow_line"]
    assert finding.evidence["slow_line"].endswith(": log")
    assert finding.advice.startswith("In the slowest profiled step")


def test_a_trace_alone_tells_nothing() -> None:
    assert step_drift(Facts(trace_step_ns=tuple(range(100)))) is None
