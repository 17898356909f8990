"""What the kernel tells of processes, the host and storage, and what it does not tell."""

import os
from pathlib import Path

import pytest

from workbench.recording.loader import storage as storage_module
from workbench.recording.loader.processes import accounts_delays, host_row, process_row
from workbench.recording.loader.storage import network_mounts, storage
from workbench.recording.loader.system import SystemSampler

STAT = (
    "42 (pt (data) worker) S 1 1 1 0 -1 4194304 900 0 7 0 300 50 0 0 20 0 3 0 1000 20000000 2500 "
    + "0 " * 17
    + "12 0 0 0\n"
)
"""Field 12: 7 major faults; 14, 15: 300 and 50 ticks; 20: 3 threads; 24: 2500 pages; 42: 12."""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    worker = tmp_path / "42"
    worker.mkdir()
    (worker / "stat").write_text(STAT)
    (worker / "io").write_text("rchar: 5000\nwchar: 1\nsyscr: 3\nsyscw: 1\nread_bytes: 4096\n")
    (worker / "status").write_text(
        "Name:\tpython\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4\n"
    )
    (worker / "schedstat").write_text("900 250000 12\n")
    (tmp_path / "stat").write_text("cpu  10 20 30 1000 40 1 2 3 0 0\ncpu0 1 2 3\n")
    (tmp_path / "loadavg").write_text("1.50 1.00 0.50 2/300 99\n")
    return tmp_path


def test_a_process_in_numbers(proc: Path) -> None:
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    row = process_row(42, proc, delays=True)
    assert row is not None
    assert row["threads"] == 3
    assert (row["user_ns"], row["system_ns"]) == (300 * tick, 50 * tick)
    assert row["resident_bytes"] == 2500 * os.sysconf("SC_PAGE_SIZE")
    assert row["block_delay_ns"] == 12 * tick
    assert (row["read_bytes"], row["storage_bytes"]) == (5000, 4096)
    assert (row["voluntary_switches"], row["involuntary_switches"]) == (17, 4)
    assert row["run_delay_ns"] == 250_000
    assert row["major_faults"] == 7


def test_delays_that_are_not_accounted_are_missing_and_not_zero(proc: Path) -> None:
    row = process_row(42, proc, delays=accounts_delays(proc))
    assert row is not None
    assert row["block_delay_ns"] is None


def test_files_that_a_sandbox_hides_make_numbers_missing(proc: Path) -> None:
    for name in ("io", "status", "schedstat"):
        (proc / "42" / name).unlink()
    row = process_row(42, proc)
    assert row is not None
    assert [row[name] for name in ("read_bytes", "voluntary_switches", "run_delay_ns")] == [
        None,
        None,
        None,
    ]


def test_a_process_that_is_gone_has_no_row(proc: Path) -> None:
    assert process_row(43, proc) is None


def test_the_host_in_numbers(proc: Path) -> None:
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    row = host_row(proc)
    assert row["user_ns"] == 30 * tick  # user and nice
    assert row["system_ns"] == 33 * tick  # system, interrupts of both kinds
    assert row["io_wait_ns"] == 40 * tick
    assert row["cpu_ns"] == 63 * tick
    assert row["load_average"] == 1.5
    assert row["io_stall_ns"] is None  # no pressure folder


def test_storage_is_named_by_its_kind(tmp_path: Path) -> None:
    own = tmp_path / "proc" / "self"
    own.mkdir(parents=True)
    (own / "mountinfo").write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "23 22 0:40 / /data rw,relatime shared:3 - nfs4 server:/data rw\n"
    )
    queue = tmp_path / "sys" / "dev" / "block" / "8:1" / ".." / "queue"
    (tmp_path / "sys" / "dev" / "block" / "8:1").mkdir(parents=True)
    queue.mkdir()
    (queue / "rotational").write_text("1\n")
    proc, sys = tmp_path / "proc", tmp_path / "sys"

    disk = storage(os.makedev(8, 1), proc, sys)
    assert (disk.type, disk.network, disk.rotational) == ("ext4", False, True)
    far = storage(os.makedev(0, 40), proc, sys)
    assert (far.type, far.network, far.rotational) == ("nfs4", True, None)
    unknown = storage(os.makedev(9, 9), proc, sys)
    assert (unknown.type, unknown.network, unknown.memory) == (None, None, None)
    assert network_mounts(proc) == ["nfs4"]
    assert "server" not in str(far.to_json())


def test_network_and_memory_do_not_overlap() -> None:
    assert not storage_module._NETWORK & storage_module._MEMORY


def test_sampling_ends_with_its_thread() -> None:
    sampler = SystemSampler(lambda: [(0, 0, os.getpid()), (0, 1, 2**22 + 1)])
    sampler.start()
    sampler.wake()
    sampler.stop()
    sampler.stop()
    rows = sampler.rows
    assert {row["process"] for row in rows} == {"host", "training", "worker"}
    assert {row.get("worker") for row in rows if row["process"] == "worker"} == {0}
    instants = [row["at_ns"] for row in rows if row["process"] == "host"]
    assert instants == sorted(instants)
    assert len(instants) >= 2
