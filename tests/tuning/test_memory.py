"""How much memory does a block hold, and when is it ended?"""

import mmap
import subprocess

import pytest

from workbench.recording.peak_memory import MemoryProbe, larger
from workbench.tuning import memory
from workbench.tuning.memory import MemoryGuard, available_bytes


def touch(pages: mmap.mmap) -> None:
    for at in range(0, len(pages), mmap.PAGESIZE):
        pages[at] = 1


def test_the_peak_of_a_block_is_its_own_and_not_that_of_the_process():
    size = 150_000_000
    with mmap.mmap(-1, size) as gone:  # pages of the system: an allocator may have some at hand
        touch(gone)
    probe = MemoryProbe(None)
    probe.start()
    before = probe.read()["peak_rss_bytes"]
    with mmap.mmap(-1, size) as held:
        touch(held)
    peak = probe.read()["peak_rss_bytes"]
    assert peak - before == pytest.approx(size, rel=0.1)
    probe.start()
    assert probe.read()["peak_rss_bytes"] < peak - size / 2


def test_without_workers_their_memory_is_nothing_and_without_a_device_its_is_not_measured():
    with subprocess.Popen(["sleep", "60"]) as other:  # no worker of a loader
        found = MemoryProbe(None).read()
        other.kill()
    assert found["workers_bytes"] == 0
    assert found["device_peak_bytes"] is None
    assert found["peak_rss_bytes"] is None  # nobody has begun


def test_the_guard_ends_a_measurement_before_the_system_does(monkeypatch: pytest.MonkeyPatch):
    guard = MemoryGuard()
    guard.check()
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000_000)
    with pytest.raises(MemoryError, match=r"only 1\.00 MB of .* were left"):
        guard.check()


def test_a_containers_limit_counts(monkeypatch: pytest.MonkeyPatch):
    # 4 GB may be taken, 3 GB are, of which the system gives back 500 MB of file pages when asked.
    given = {"memory.max": "4000000000", "memory.current": "3000000000"}
    monkeypatch.setattr(
        memory, "_read", lambda path: given.get(path.name, "inactive_file 500000000")
    )
    assert available_bytes() <= 1_500_000_000


def test_of_two_blocks_the_larger_peak_counts_and_none_is_no_zero():
    a = {"peak_rss_bytes": 5, "workers_bytes": 0, "device_peak_bytes": None}
    b = {"peak_rss_bytes": 3, "workers_bytes": 2, "device_peak_bytes": None}
    assert larger(None, a) == a
    assert larger(a, b) == {"peak_rss_bytes": 5, "workers_bytes": 2, "device_peak_bytes": None}
