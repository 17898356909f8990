"""After a session under every kind of setting, whatever ended it, no byte is another one."""

import gc
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.session.loops import Remembered
from tests.workload.state_bytes import difference, process_bytes, state_bytes
from tests.workload.zoo import ZOO, everything
from workbench.session import Session
from workbench.settings import Settings

pytestmark = pytest.mark.slow

WAIT_S = 120.0
SETTINGS = (
    Settings(precision="bf16", accumulation=2),
    Settings(precision="bf16_pure"),
    Settings(channels_last=True),
    Settings(batch_size=2),
    Settings(workers=1, prefetch_factor=1, persistent_workers=True),
    Settings(workers=2, in_order=False, drop_last=True),
    Settings(clip_norm=0.5, set_to_none=False, optimizer="foreach"),
    Settings(matmul_precision="medium", threads=1, attention="math"),
)


@pytest.fixture(autouse=True)
def collected(nothing_left: None) -> Iterator[None]:
    """Workers that a loader keeps end with the loader."""
    yield
    gc.collect()


def taken_up(session: Session, settings: Settings) -> None:
    """Ask for settings, and wait until they are in force or refused, and a step under them."""
    known = len(session.changes)
    session.replace(settings)
    until = time.monotonic() + WAIT_S
    while len(session.changes) == known and session.state.settings != settings:
        assert time.monotonic() < until, session.state
        assert session.state.status not in ("failed", "stopped"), session.state
        time.sleep(0.002)
    assert session.wait(2, WAIT_S), session.state


@pytest.mark.parametrize("name", ZOO)
def test_every_kind_of_workload_is_as_before_after_every_setting(name: str, tmp_path: Path) -> None:
    """Settings that cannot act on a workload are refused, and leave as little behind."""
    work = ZOO[name]()
    roots = everything(work)
    before = state_bytes(*roots), process_bytes()
    with Session(work, folder=tmp_path) as session:
        session.start()
        assert session.wait(2, WAIT_S), session.state
        for settings in SETTINGS:
            taken_up(session, settings)
        applied = [change for change in session.changes if change.error is None]
    after = state_bytes(*roots), process_bytes()
    for old, new in zip(before, after, strict=True):
        assert old == new, difference(old, new)
    assert applied


class Fault:
    """Raises at its third call, and holds nothing that changes."""

    def __init__(self, error: BaseException) -> None:
        self._left = iter((None, None, error))

    def __call__(self, *_: Any) -> None:
        error = next(self._left, None)
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [ValueError("planted"), SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["model", "loss", "optimizer", "loader"])
def test_an_error_anywhere_in_a_step_leaves_nothing_behind(
    place: str, error: BaseException, tmp_path: Path
) -> None:
    """Also one that ordinary code does not catch: the session fails, and says so."""
    loop, fault = Remembered(), Fault(error)
    roots = loop.model, loop.optimizer, loop.loader
    before = state_bytes(*roots)
    if place == "model":
        hook = loop.model.register_forward_pre_hook(fault)
    elif place == "optimizer":
        hook = loop.optimizer.register_step_pre_hook(fault)
    elif place == "loss":
        loop.seen.before = fault
    else:
        data: Any = loop.loader.dataset
        data.before = fault
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        assert not session.wait(10_000, WAIT_S)
        assert session.state.status == "failed"
        assert type(error).__name__ in str(session.state.error)
    if place in ("model", "optimizer"):
        hook.remove()
    elif place == "loader":
        del data.before
    assert state_bytes(*roots) == before


def kill(children: list[BaseProcess]) -> None:
    """End workers; torch's handler of a lost one may raise in this thread, wherever it is."""
    for child in children:
        with suppress(RuntimeError, ProcessLookupError):  # the training may have ended it as well
            os.kill(child.pid or 0, signal.SIGKILL)
            child.join(WAIT_S)
            time.sleep(0.05)  # the signal of its death is handled in here
        assert not child.is_alive()


def test_killed_workers_are_replaced_and_no_sample_is_lost(tmp_path: Path) -> None:
    loop = Remembered(workers=2)
    roots = loop.model, loop.optimizer, loop.loader
    before = state_bytes(*roots)
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        assert session.wait(5, WAIT_S)
        session.pause()
        kill(active_children())
        session.start()
        assert session.wait(30, WAIT_S), session.state
        session.pause()
        seen = list(loop.seen.numbers)
        assert "workers were started again" in str(session.state.error)
    assert sorted(seen[:48]) == list(range(48))
    assert state_bytes(*roots) == before


def at_any_moment(rounds: int, folder: Path) -> None:
    """Switch, pause, undo, single steps, and then the end, wherever the training is just then."""
    chance = random.Random(rounds)
    for number in range(rounds):
        name = chance.choice(list(ZOO))
        work = ZOO[name]()
        roots = everything(work)
        before = state_bytes(*roots), process_bytes()
        session = Session(work, folder=folder)
        session.start()
        for _ in range(chance.randint(0, 6)):
            asked = chance.choice(("replace", "replace", "undo", "pause", "start", "step_once"))
            getattr(session, asked)(*[chance.choice(SETTINGS)] * (asked == "replace"))
            time.sleep(chance.random() * 0.03)
        if number % 3:
            session.stop(timeout_s=WAIT_S)
        del session  # or nobody holds it any more
        gc.collect()
        after = state_bytes(*roots), process_bytes()
        for old, new in zip(before, after, strict=True):
            assert old == new, (number, name, difference(old, new))


def test_the_end_may_come_at_any_moment(tmp_path: Path) -> None:
    at_any_moment(9, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_end_may_come_at_many_moments(tmp_path: Path) -> None:
    at_any_moment(400, tmp_path)
