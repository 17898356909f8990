"""A session: what the training itself shows of start, stop, errors and the end."""

import gc
import threading
import time
from pathlib import Path

import pytest
import torch

from tests.session.driving import WAIT_S, run
from tests.session.loops import Net, Remembered
from tests.workload.state_bytes import process_bytes, state_bytes
from workbench.errors import ProfilerBusyError, SettingError, TimeLimitError
from workbench.profiling import profile
from workbench.session import Session
from workbench.settings import Settings
from workbench.workload import Workload
from workbench.workload.snapshot import Snapshot

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]


def test_stop_puts_everything_back_bit_for_bit(tmp_path: Path) -> None:
    loop = Remembered()
    roots = (loop.model, loop.optimizer, loop.loader)
    before, process = state_bytes(*roots), process_bytes()
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        assert session.wait(30, WAIT_S)
        session.apply(Settings(batch_size=6, precision="bf16"))
        assert session.wait(5, WAIT_S)
        moved = loop.model.head.weight.detach().clone()
    assert session.state.status == "stopped"
    assert not torch.equal(moved, loop.model.head.weight)
    assert state_bytes(*roots) == before
    assert process_bytes() == process


def test_kept_weights_are_those_that_were_trained(tmp_path: Path) -> None:
    loop = Remembered()
    before = loop.model.head.weight.detach().clone()
    random = torch.get_rng_state()
    session = Session(loop.work, folder=tmp_path)
    run(session, 3)
    trained = loop.model.head.weight.detach().clone()
    session.stop(keep=True)
    assert torch.equal(loop.model.head.weight, trained)
    assert not torch.equal(trained, before)
    assert torch.equal(torch.get_rng_state(), random)


def test_a_stopped_session_starts_again_from_where_the_weights_are(tmp_path: Path) -> None:
    loop = Remembered()
    session = Session(loop.work, folder=tmp_path)
    run(session, 2)
    session.stop(keep=True)
    kept = loop.model.head.weight.detach().clone()
    run(session, 2)
    assert not torch.equal(kept, loop.model.head.weight)
    session.stop()
    assert torch.equal(kept, loop.model.head.weight)
    session.stop()
    assert session.state.step == 4


def test_an_error_of_the_step_waits_for_somebody(tmp_path: Path) -> None:
    loop = Remembered()
    calls: list[int] = []

    def fail(target: torch.Tensor) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("a bad sample")

    loop.seen.before = fail
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        assert not session.wait(10_000, WAIT_S)
        assert session.state.status == "failed"
        assert session.state.step == 2
        assert "a bad sample" in str(session.state.error)
        session.start()
        assert session.wait(3, WAIT_S)
        assert session.state.error is None


def test_a_second_session_or_profile_is_refused(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        with pytest.raises(ProfilerBusyError, match="a session is already running"):
            Session(loop.work, folder=tmp_path).start()
        with pytest.raises(ProfilerBusyError, match="a session is already running"):
            profile(loop.work, folder=tmp_path, progress=False)
    other = Session(loop.work, folder=tmp_path)
    run(other, 1)
    other.stop()


def test_a_session_that_nobody_holds_stops_itself(tmp_path: Path) -> None:
    loop = Remembered(workers=1)
    before = state_bytes(loop.model)
    session = Session(loop.work, folder=tmp_path)
    session.start()
    assert session.wait(3, WAIT_S)
    del session
    gc.collect()
    assert state_bytes(loop.model) == before


def test_a_step_that_hangs_is_broken_off(tmp_path: Path) -> None:
    loop = Remembered()
    reached = threading.Event()

    def hang(_: torch.Tensor) -> None:
        reached.set()
        while True:
            time.sleep(0.01)

    loop.seen.before = hang
    before = state_bytes(loop.model)
    session = Session(loop.work, folder=tmp_path)
    session.start()
    assert reached.wait(WAIT_S)
    session.stop(timeout_s=8)
    assert state_bytes(loop.model) == before
    assert session.state.status == "stopped"


def test_a_call_that_cannot_be_broken_off_is_told(tmp_path: Path) -> None:
    loop = Remembered()
    reached, release = threading.Event(), threading.Lock()
    release.acquire()

    def hang(_: torch.Tensor) -> None:
        reached.set()
        with release:  # as a call of C that does not return
            pass

    loop.seen.before = hang
    session = Session(loop.work, folder=tmp_path)
    session.start()
    assert reached.wait(WAIT_S)
    with pytest.raises(TimeLimitError, match="running a training step"):
        session.stop(timeout_s=0.5)
    release.release()
    session.stop()
    assert session.state.status == "stopped"


def test_what_cannot_be_put_back_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Snapshot, *, keep_training: bool) -> None:
        restore(self, keep_training=keep_training)
        raise RuntimeError("the tensor is gone")

    restore = Snapshot.restore
    monkeypatch.setattr(Snapshot, "restore", fail)
    session = Session(Remembered().work, folder=tmp_path)
    run(session, 1)
    session.stop()
    assert session.state.status == "failed"
    assert "the tensor is gone" in str(session.state.error)
    assert "Not everything could be put back" in session.state.doing


def test_thread_local_switches_of_the_starting_thread_are_in_force(tmp_path: Path) -> None:
    dtypes: list[torch.dtype] = []
    model = torch.nn.Linear(4, 1)

    def step(model: torch.nn.Module, batch: torch.Tensor) -> None:
        dtypes.append(model(batch).dtype)

    work = Workload(model, [torch.ones(2, 4)], step=step)
    with Session(work, folder=tmp_path) as session:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            session.step_once()
        assert session.wait(0, WAIT_S)
        until = time.monotonic() + WAIT_S
        while not session.state.step and time.monotonic() < until:
            time.sleep(0.01)
        assert dtypes == [torch.bfloat16]


def test_wrong_orders_are_refused_at_once(tmp_path: Path) -> None:
    session = Session(Remembered().work, folder=tmp_path)
    with pytest.raises(SettingError, match="from 1 to 20"):
        session.burst(21)
    with pytest.raises(SettingError, match="Settings"):
        session.apply({"workers": 2})  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="positive"):
        session.burst_every_s = 0
    spread = {offer.values[0]: offer.state for offer in session.offers()[-4:]}
    assert spread == dict.fromkeys(("ddp", "fsdp", "pp"), "possible") | {"tp": "possible"}
    assert isinstance(Net(), torch.nn.Module)
