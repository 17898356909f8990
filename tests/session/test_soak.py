"""A session that lives long: memory, threads, files and processes stay as many as they were."""

import os
import threading
import time
from multiprocessing import active_children
from pathlib import Path

import psutil
import pytest

from tests.session.loops import Remembered
from tests.soak.session import soak
from workbench.session import Session
from workbench.settings import Settings

WAIT_S = 60.0
SWITCHES = (
    Settings(workers=1),
    Settings(batch_size=6),
    Settings(precision="bf16"),
    Settings(precision="bf16_pure"),
    Settings(),
)


def live(session: Session, loop: Remembered, rounds: int) -> None:
    """Every switch once a round, some steps under each."""
    for _ in range(rounds):
        for settings in SWITCHES:
            session.replace(settings)
            assert session.wait(6, WAIT_S), session.state
            for seen in (loop.seen.numbers, loop.seen.losses, loop.model.dtypes, loop.model.sizes):
                seen.clear()  # the loop's own growth


def test_many_switches_leave_as_many_threads_files_and_hooks(
    tmp_path: Path, one_thread: None
) -> None:
    loop, process = Remembered(), psutil.Process()
    with Session(loop.work, folder=tmp_path) as session:
        session.start()
        live(session, loop, 2)
        session.pause()
        until = time.monotonic() + WAIT_S
        while session.state.status != "paused" and time.monotonic() < until:
            time.sleep(0.01)
        before = len(threading.enumerate()), process.num_fds(), len(active_children())
        session.start()
        live(session, loop, 6)
        session.pause()
        while session.state.status != "paused" and time.monotonic() < until:
            time.sleep(0.01)
        assert (len(threading.enumerate()), process.num_fds(), len(active_children())) == before
        # No step is lost: their numbers follow each other without a gap.
        steps = session.telemetry.columns()["step"].tolist()
        assert steps == list(range(session.state.step))
        assert all(change.error is None for change in session.changes)


@pytest.mark.soak
@pytest.mark.timeout(5400)
def test_memory_is_flat_for_half_an_hour(tmp_path: Path, one_thread: None) -> None:
    """SOAK_MINUTES chooses another time; the same table comes from tests.soak.session."""
    outcome = soak(float(os.environ.get("SOAK_MINUTES", "30")), tmp_path)
    assert outcome.wrong() == [], outcome.table()
