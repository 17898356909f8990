"""After a session under every kind of setting, whatever ended it, no byte is another one."""

import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.session.loops import Remembered
from tests.workload.state_bytes import difference, process_bytes, state_bytes
from tests.workload.zoo import ZOO, everything
from workbench.errors import WorkbenchError
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
def nothing_left(one_thread: None) -> Iterator[None]:
    """Every test ends with the threads and processes that it began with."""
    threads, children = set(threading.enumerate()), set(active_children())
    yield
    gc.collect()
    assert set(threading.enumerate()) - threads == set()
    assert set(active_children()) - children == set()


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
