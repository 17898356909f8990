"""Collections are numbers in the steps of record, and ranges in the trace."""

import gc
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.recording.traces import names
from workbench.recording.garbage import GarbageProbe
from workbench.recording.window import Window
from workbench.settings import Record


def test_only_collections_while_counting_are_counted_by_generation() -> None:
    with GarbageProbe() as probe:
        gc.collect(0)
        probe.counting = True
        gc.collect(1)
        gc.collect(2)
        gc.collect(2)
        probe.counting = False
        gc.collect(2)
    found = probe.to_json()
    assert found["collections"][1:] == [1, 2]
    assert all(ns > 0 for ns in found["ns"][1:])


def test_a_collection_is_a_range_while_marking(tmp_path: Path) -> None:
    with GarbageProbe() as probe:
        window = Window(Record(), None)
        window.prepare()
        window.start()
        gc.collect()
        probe.marking = True
        gc.collect()
        probe.marking = False
        window.stop()
    window.export(tmp_path / "t.json.gz")
    assert names(tmp_path / "t.json.gz").count("workbench.gc") == 1


def test_the_collector_is_left_as_it_was() -> None:
    before = list(gc.callbacks)
    with GarbageProbe() as probe:
        assert len(gc.callbacks) == len(before) + 1
        probe.stop()
    assert gc.callbacks == before


def test_an_interrupt_during_a_collection_is_not_lost() -> None:
    """Python drops what a callback of the collector raises, whosever it is; hypothesis has one."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def collected() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.03)
        gc.collect()
        time.sleep(5)

    many = [[] for _ in range(3_000_000)]  # a collection takes longer than the timer
    before, hook = signal.signal(signal.SIGPROF, interrupt), sys.unraisablehook
    try:
        with GarbageProbe(), pytest.raises(KeyboardInterrupt):
            collected()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert sys.unraisablehook is hook
    assert len(many) == 3_000_000
