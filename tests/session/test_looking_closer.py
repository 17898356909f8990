"""Bursts of the profiler and comparisons inside a session, and changes that telemetry sees."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from tests.session.loops import Remembered
from tests.tuning.loops import Sleepy, training
from workbench.profiling import profile
from workbench.recording.telemetry import Telemetry
from workbench.session import Session
from workbench.session.watching import changed
from workbench.settings import Settings

pytestmark = pytest.mark.slow


WAIT_S = 120.0
NAN = float("nan")


def test_a_burst_becomes_a_run_and_training_goes_on(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path, name="mine") as session:
        session.start()
        assert session.wait(30, WAIT_S)
        burst = session.burst(4)
        assert burst.wait(WAIT_S)
        assert burst.error is None
        assert burst.run is not None
        assert session.wait(5, WAIT_S)
        known = session.telemetry.columns()
        # One step settles the profiler before the four that are recorded.
        assert known["profiled"].sum() == 5
        assert burst.status == "done"
        assert burst.findings is not None
        assert [run.name for run in session.history()] == ["mine-burst"]
    steps = burst.run.steps
    assert steps is not None
    assert len(steps) == 4
    timings = burst.run.record.timings if burst.run.record else None
    assert timings is not None
    assert len(timings.step_ns) >= 30


def test_a_comparison_leaves_weights_and_random_states_alone(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        session.step_once()
        until = time.monotonic() + WAIT_S
        while session.state.status != "paused" and time.monotonic() < until:
            time.sleep(0.01)
        weight, random = loop.model.head.weight.detach().clone(), torch.get_rng_state()
        trial = session.verify(Settings(batch_size=8), steps=5, blocks=4, record=None)
        assert trial.wait(WAIT_S)
        assert trial.error is None
        assert trial.status == "done"
        assert trial.verification is not None
        assert trial.verification.advice in {"keep", "revert", "cannot tell"}
        assert torch.equal(loop.model.head.weight, weight)
        assert torch.equal(torch.get_rng_state(), random)
        session.start()
        assert session.wait(2, WAIT_S)
        assert session.state.settings == Settings()
    profile(loop.work, folder=tmp_path, steps=2, progress=False)  # the right to profile is free


def test_a_comparison_can_be_cancelled(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        assert session.wait(1, WAIT_S)
        trial = session.verify(Settings(batch_size=8), steps=5000, blocks=50)
        until = time.monotonic() + WAIT_S
        while trial.status == "waiting" and time.monotonic() < until:
            time.sleep(0.01)
        trial.cancel()
        assert trial.wait(WAIT_S)
        assert trial.status == "cancelled"
        assert session.wait(1, WAIT_S)


def rows(times_ms: list[float], *, change: int = 0) -> Telemetry:
    telemetry = Telemetry()
    for step, each in enumerate(times_ms):
        row = (step, step, each * 1e6, 0, NAN, NAN, NAN, 0, NAN, 4, 0, change, False)
        telemetry.add(row)
    return telemetry


def test_a_step_time_that_rises_by_half_is_seen_and_noise_is_not() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, 80)
    risen = (np.repeat([10.0, 15.0], 40) + noise).tolist()
    assert changed(rows((10 + noise).tolist())) is None
    said = changed(rows(risen))
    assert said is not None
    assert said.startswith("the step time went from 10")


@pytest.mark.parametrize("since", [0, 10_500])
def test_the_ring_keeps_the_last_ten_thousand_steps(since: int) -> None:
    """Of 12,000 steps the first 2,000 are gone."""
    known = rows([1.0] * 12_000).columns(since)
    assert known["step"][0] == max(since, 2_000)
    assert known["step"][-1] == 11_999


def test_what_a_burst_finds_can_be_tried(tmp_path: Path) -> None:
    """8 samples of 5 ms make 40 ms a step: the burst says so, and its setting is compared."""
    work = training(DataLoader(Sleepy(0.005), batch_size=8))
    with Session(work, folder=tmp_path) as session:
        session.start()
        assert session.wait(22, WAIT_S)
        burst = session.burst(4)
        assert burst.wait(WAIT_S)
        assert burst.run is not None
        finding = next(each for each in burst.findings or () if each.setting)
        assert finding.code == "WB101"
        assert finding.origin is not None
        assert finding.origin.run == burst.run.name
        trial = session.verify(finding, steps=3, blocks=4, record=None)
        assert trial.wait(WAIT_S)
        assert (trial.error, trial.status) == (None, "done")
    assert trial.verification is not None
    assert trial.verification.finding is finding
    assert trial.verification.bound is not None
