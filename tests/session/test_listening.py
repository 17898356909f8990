"""What a session says while it trains: times of its steps, and word of what happens."""

from pathlib import Path

import pytest
import torch

from tests.session.driving import WAIT_S, run
from tests.session.loops import Remembered
from tests.workload.state_bytes import state_bytes
from workbench.session import Session
from workbench.settings import Settings
from workbench.workload import Workload

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]


def test_telemetry_adds_up_to_the_step(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        assert session.wait(20, WAIT_S)
        session.pause()
        state, known = session.state, session.telemetry.columns()
    parts = ("input_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns")
    total = sum(known[name] for name in parts)
    assert total == pytest.approx(known["step_ns"], rel=1e-6)
    assert (known["step"] == range(len(known["step"]))).all()
    assert (known["samples"] == 4).all()
    assert state.overhead_ratio is not None
    assert state.overhead_ratio > 1
    later = session.telemetry.columns(since_step=15)
    assert later["step"][0] == 15


def test_of_a_step_of_ones_own_what_hooks_see_is_measured(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = model(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    work = Workload(model, [torch.ones(2, 4)], step=step, optimizer=optimizer)
    before = state_bytes(model, optimizer)
    with Session(work, folder=tmp_path) as session:
        run(session, 3)
        known = session.telemetry.columns()
    assert (known["forward_ns"] > 0).all()
    assert (known["optimizer_ns"] > 0).all()
    assert known["backward_ns"] != pytest.approx(known["backward_ns"])  # not measured
    assert (known["loss"][1:] < known["loss"][:-1]).all()
    assert state_bytes(model, optimizer) == before


def test_a_listener_that_fails_is_shown_and_disturbs_nobody(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:

        def fail(kind: str) -> None:
            raise KeyError(kind)

        session.listen(fail)
        run(session, 2)
        assert "a listener failed: KeyError" in str(session.state.error)


def test_a_listener_may_stop_the_session(tmp_path: Path) -> None:
    loop = Remembered()
    session = Session(loop.work, folder=tmp_path)

    def stop(kind: str) -> None:
        if kind == "change":
            session.stop()

    session.listen(stop)
    session.start()
    session.apply(Settings(batch_size=6))
    assert session.wait(timeout_s=WAIT_S)
    assert session.state.status == "stopped"
    assert session.state.error is None
