"""A session: what the training itself shows of start, pause, switch, errors and the end."""

import gc
import threading
import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch

from tests.session.loops import Net, Remembered
from tests.workload.state_bytes import process_bytes, state_bytes
from workbench.errors import ProfilerBusyError, SettingError, TimeLimitError
from workbench.profiling import profile
from workbench.session import Session
from workbench.settings import Settings
from workbench.workload import Workload
from workbench.workload.snapshot import Snapshot

pytestmark = pytest.mark.slow


WAIT_S = 60.0


@pytest.fixture(autouse=True)
def nothing_left(one_thread: None) -> Iterator[None]:
    """Every test ends with the threads and processes that it began with."""
    threads, children = set(threading.enumerate()), set(active_children())
    yield
    assert set(threading.enumerate()) - threads == set()
    assert set(active_children()) - children == set()


def run(session: Session, steps: int) -> None:
    """Train exactly so many steps, then stand still."""
    for _ in range(steps):
        before = session.state.step
        session.step_once()
        until = time.monotonic() + WAIT_S
        while session.state.step == before or session.state.status == "running":
            assert time.monotonic() < until, session.state
            assert session.state.status != "failed", session.state
            time.sleep(0.002)


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


@pytest.mark.parametrize("change", [{"workers": 2}, {"batch_size": 6}, {"drop_last": True}])
def test_the_rest_of_a_shuffled_epoch_is_the_same_after_a_switch(
    tmp_path: Path, change: dict[str, int]
) -> None:
    """48 samples in batches of 4: after 5 batches 28 are left, whoever loads them."""
    plain = Remembered()
    with Session(plain.work, folder=tmp_path) as session:
        run(session, 12)
        order = plain.seen.numbers[:48]
    assert sorted(order) == list(range(48))
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 5)
        session.apply(Settings(**change))
        run(session, 7)
        seen = loop.seen.numbers
        assert session.changes[0].error is None
        assert seen[:44] == order[:44]
        if "workers" in change:
            assert seen == order


def test_a_switch_at_the_very_end_of_an_epoch_begins_the_next_one(tmp_path: Path) -> None:
    """Of 12 batches of 4 none is left; later 4 samples are, too few for a whole batch of 6."""
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 12)
        session.apply(Settings(workers=1))
        run(session, 12)
        assert sorted(loop.seen.numbers[48:]) == list(range(48))
        run(session, 11)
        session.apply(Settings(batch_size=6, drop_last=True))
        run(session, 8)
        assert sorted(loop.seen.numbers[-48:]) == list(range(48))
        assert session.state.epoch == 3


def test_switching_workers_leaves_the_training_as_it_would_have_been(tmp_path: Path) -> None:
    """Dropout draws random numbers: the losses are equal only if none went to the switch."""
    plain, loop = Remembered(), Remembered()
    with Session(plain.work, folder=tmp_path) as session:
        run(session, 9)
        wanted = list(plain.seen.losses)
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 4)
        session.apply(Settings(workers=1))
        run(session, 3)
        session.undo()
        run(session, 2)
        assert loop.seen.losses == wanted


def test_an_iterable_data_set_begins_anew_and_says_so(tmp_path: Path) -> None:
    class Stream(torch.utils.data.IterableDataset[torch.Tensor]):
        def __iter__(self) -> Iterator[torch.Tensor]:
            return iter(torch.arange(12.0).reshape(12, 1))

    seen: list[float] = []

    def step(model: torch.nn.Module, batch: torch.Tensor) -> None:
        seen.extend(batch.flatten().tolist())

    loader = torch.utils.data.DataLoader(Stream(), batch_size=2)
    work = Workload(torch.nn.Linear(1, 1), loader, step=step)
    with Session(work, folder=tmp_path) as session:
        run(session, 2)
        session.apply(Settings(threads=1))  # no matter of the loader: it goes on
        run(session, 1)
        session.apply(Settings(batch_size=3))
        run(session, 1)
        assert seen == [0, 1, 2, 3, 4, 5, 0, 1, 2]
        notes = [change.note for change in session.changes]
    assert notes[0] is None
    assert "the epoch began anew" in str(notes[1])


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


def test_batches_out_of_order_are_all_seen_once(tmp_path: Path) -> None:
    loop = Remembered(workers=2, in_order=False)
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 3)
        session.apply(Settings(workers=0))
        run(session, 9)
        assert sorted(loop.seen.numbers) == list(range(48))


def test_the_model_sees_the_precision_and_the_loader_the_workers(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 1)
        session.apply(Settings(precision="bf16"))
        run(session, 1)
        session.apply(Settings(workers=2))
        run(session, 1)
        assert len(active_children()) == 2
        session.replace(Settings())
        run(session, 1)
        assert loop.model.dtypes == [torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]
        assert not active_children()
        assert [change.step for change in session.changes] == [1, 2, 3]


def test_weights_go_on_through_bf16_and_back(tmp_path: Path) -> None:
    loop = Remembered()
    weight = loop.model.head.weight
    with Session(loop.work, Settings(precision="bf16_pure"), folder=tmp_path) as session:
        run(session, 2)
        assert weight.dtype is torch.bfloat16
        now = weight.detach().float()
        session.replace(Settings())
        session.pause()
        until = time.monotonic() + WAIT_S
        while not session.changes and time.monotonic() < until:
            time.sleep(0.01)
        assert weight.dtype is torch.float32
        assert torch.equal(weight, now)
        state = loop.optimizer.state[weight]
        assert state["exp_avg"].dtype is torch.float32
        run(session, 1)


def test_a_setting_that_cannot_act_is_told_and_the_last_ones_stay(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, Settings(batch_size=6), folder=tmp_path) as session:
        run(session, 1)
        session.apply(Settings(channels_last=True))
        run(session, 1)
        (change,) = session.changes
        assert "no 4-d weights" in str(change.error)
        assert change.applied_ns is None
        assert session.state.settings == Settings(batch_size=6)
        assert loop.model.sizes == [6, 6]


def test_out_of_memory_puts_the_last_settings_back_and_trains_the_samples(tmp_path: Path) -> None:
    loop = Remembered()

    def full(target: torch.Tensor) -> None:
        if len(target) > 8:
            raise torch.OutOfMemoryError("tried to allocate 80 GiB")

    loop.seen.before = full
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 2)
        session.apply(Settings(batch_size=16))
        run(session, 10)
        assert session.state.settings == Settings()
        assert "Memory ran out" in str(session.changes[0].error)
        assert "batch_size" in str(session.state.remedy)
        assert sorted(loop.seen.numbers) == list(range(48))  # none was lost with the batch of 16
        assert loop.optimizer.state  # and it goes on


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
    assert session.offers()[-1].field == "parallelism"
    assert isinstance(Net(), torch.nn.Module)
