"""Bursts of the profiler and comparisons inside a session, and changes that telemetry sees."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import workbench.tuning  # noqa: F401 - what it loads is then never garbage in a test
from tests.session.loops import Counting, Remembered, Slow
from workbench.profiling import profile
from workbench.recording.loader.probe import LoaderProbe
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.recording.telemetry import Telemetry
from workbench.session import Session, bursting, watching, worker
from workbench.session.watching import changed
from workbench.settings import Settings
from workbench.workload import Workload
from workbench.workload.feed import Feed

pytestmark = pytest.mark.slow


WAIT_S = 120.0
NAN = float("nan")


def test_a_burst_becomes_a_run_that_tells_what_workers_did_and_its_finding_can_be_tried(
    tmp_path: Path,
) -> None:
    """8 samples of 10 ms make 40 ms a step with two workers: the burst says so.

    The workers are started anew for it, and every epoch of 64 samples still has each of them once.
    """
    seen: list[int] = []

    def step(model: torch.nn.Module, batch: list[torch.Tensor]) -> None:
        seen.extend(batch[1].tolist())
        model(batch[0]).sum().backward()

    rows = DataLoader(Slow(0.01), batch_size=8, shuffle=True, num_workers=2)
    work = Workload(torch.nn.Linear(4, 1), rows, step=step)
    with Session(work, folder=tmp_path, name="mine") as session:
        session.start()
        assert session.wait(22, WAIT_S)
        burst = session.burst(4)
        assert burst.wait(WAIT_S)
        assert (burst.error, burst.status) == (None, "done")
        assert session.wait(5, WAIT_S)
        known = session.telemetry.columns()
        # The 4 batches that 2 workers had made ready before, then the 4 that are recorded.
        assert known["profiled"].sum() == 8
        assert [run.name for run in session.history()] == ["mine-burst"]
        epochs = [sorted(seen[first : first + 64]) for first in range(0, len(seen) - 63, 64)]
        assert len(epochs) >= 3
        assert all(epoch == list(range(64)) for epoch in epochs)

        finding = next(each for each in burst.findings or () if each.setting)
        trial = session.verify(finding, steps=3, blocks=4, record=None)
        assert trial.wait(WAIT_S)
        assert (trial.error, trial.status) == (None, "done")
    assert trial.verification is not None
    assert trial.verification.finding is finding
    assert trial.verification.bound is not None
    run = burst.run
    assert run is not None
    assert finding.origin is not None
    assert finding.origin.run == run.name
    assert run.steps is not None
    assert len(run.steps) == 4
    assert run.loader is not None
    made = run.loader[run.loader["step"].notna()]
    assert set(made["worker"]) == {0, 1}
    assert (made["fetch_ns"] >= 8 * 10e6).all()
    timings = run.record.timings if run.record else None
    assert timings is not None
    assert len(timings.step_ns) >= 22


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


def test_a_step_time_that_rises_by_half_is_seen_wherever_it_does_and_noise_is_not() -> None:
    """A look every 25 steps; one of them has the change between its sides of 40 steps each."""
    noise = np.random.default_rng(1).normal(0, 0.1, 400)
    for change in range(200, 225):
        times = np.where(np.arange(400) < change, 10.0, 15.0) + noise
        looks = {step: changed(rows(times[:step].tolist())) for step in range(25, 401, 25)}
        seen = {step: said for step, said in looks.items() if said is not None}
        assert change < min(seen) <= change + 65
        assert any(said == "the step time went from 10.0 ms to 15.0 ms" for said in seen.values())


@pytest.mark.parametrize("since", [0, 10_500])
def test_the_ring_keeps_the_last_ten_thousand_steps(since: int) -> None:
    """Of 12,000 steps the first 2,000 are gone."""
    known = rows([1.0] * 12_000).columns(since)
    assert known["step"][0] == max(since, 2_000)
    assert known["step"][-1] == 11_999


def test_a_stream_in_the_middle_of_its_epoch_is_looked_at_from_outside() -> None:
    """Its workers cannot be replaced, for what they have read is behind them; no batch is lost."""
    work = Workload(torch.nn.Linear(1, 1), DataLoader(Counting(), batch_size=2, num_workers=1))
    feed, probe = Feed(work), LoaderProbe()
    feed.open(Settings())
    probe.start()
    try:
        taken = [feed.take() for _ in range(3)]
        assert "read from its beginning" in str(feed.look_into(probe))
        taken += [feed.take() for _ in range(3)]
        feed.look_away()
        probe.rest()
        taken += [feed.take() for _ in range(3)]
    finally:
        probe.stop()
        feed.close()
    assert torch.cat(taken).tolist() == list(range(18))
    assert [found.batch for found in probe.streams[0].delivered] == [3, 4, 5]
    assert "only the training process's side" in probe.notes[0]


@pytest.fixture
def no_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts are asked for, and nothing is recorded."""
    monkeypatch.setattr(worker, "record", lambda _, burst: burst.end("failed"))


def asks_by_itself(session: Session) -> str:
    """Why the first burst was asked for."""
    until = time.monotonic() + WAIT_S
    while not session.state.bursts:
        assert time.monotonic() < until, session.state
        time.sleep(0.005)
    return session.state.bursts[0].reason


def test_the_clock_asks_for_a_burst(tmp_path: Path, no_profiler: None) -> None:
    with Session(Remembered().work, folder=tmp_path) as session:
        session.burst_every_s = 0.2
        session.start()
        assert session.wait(1, WAIT_S)
        assert asks_by_itself(session) == "every 200 ms"


def test_what_telemetry_sees_asks_for_a_burst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_profiler: None
) -> None:
    monkeypatch.setattr(watching, "changed", lambda _: "the step time went up")
    with Session(Remembered().work, folder=tmp_path) as session:
        session.start()
        assert session.wait(30, WAIT_S)
        assert session.state.bursts == ()
        session.watch_changes = True
        assert asks_by_itself(session) == "the step time went up"


def test_a_burst_whose_run_cannot_be_made_leaves_no_recorder_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("planted")

    finish, finished = LoaderRecorder.finish, list[LoaderRecorder]()

    def noted(self: LoaderRecorder) -> None:
        finished.append(self)
        finish(self)

    monkeypatch.setattr(LoaderRecorder, "finish", noted)
    monkeypatch.setattr(bursting, "_measured", fail)
    with Session(Remembered().work, folder=tmp_path) as session:
        burst = session.burst(1)
        session.start()
        assert burst.wait(WAIT_S)
        assert (burst.status, burst.error) == ("failed", "ValueError: planted.")
        assert len(finished) == 1
        assert session.wait(2, WAIT_S)  # the training goes on
