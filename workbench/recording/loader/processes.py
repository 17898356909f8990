"""What /proc tells of a process and of the host, as numbers; ``None`` where it tells nothing."""

import os
import time
from pathlib import Path
from typing import Any

from workbench.recording.loader.counters import run_delay_ns
from workbench.recording.loader.layout import MISSING

PROC = Path("/proc")
_OVER = frozenset("ZXx")
"""States of a process that has ended and was not waited for: its memory and files are gone."""


def process_row(pid: int, proc: Path = PROC, *, delays: bool = False) -> dict[str, Any] | None:
    """Counters of a process; ``None`` when it is gone.

    Args:
        pid: The process.
        proc: Where the kernel tells.
        delays: Whether the kernel accounts delays of block I/O.
    """
    text = _text(proc / str(pid) / "stat")
    if text is None:
        return None
    # The command's name may hold spaces and brackets; the fields come after its last bracket.
    fields = text.rpartition(")")[2].split()
    if fields[0] in _OVER:
        return None
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    row: dict[str, Any] = {
        "pid": pid,
        "cpu_ns": _cpu_ns(pid) if proc == PROC else None,
        "major_faults": int(fields[9]),
        "user_ns": int(fields[11]) * tick,
        "system_ns": int(fields[12]) * tick,
        "threads": int(fields[17]),
        "resident_bytes": int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        "block_delay_ns": int(fields[39]) * tick if delays and len(fields) > 39 else None,
    }
    row.update(_io(proc / str(pid) / "io"))
    row.update(_switches(proc / str(pid) / "status"))
    delay = run_delay_ns((_text(proc / str(pid) / "schedstat") or "").split())
    row["run_delay_ns"] = None if delay == MISSING else delay
    return row


def host_row(proc: Path = PROC) -> dict[str, Any]:
    """Counters of the whole machine."""
    from workbench.machine import shared_memory

    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    cpu = [int(part) for part in (_text(proc / "stat") or "").partition("\n")[0].split()[1:]]
    known = len(cpu) >= 7
    load = (_text(proc / "loadavg") or "").split()
    room = shared_memory()
    return {
        "user_ns": (cpu[0] + cpu[1]) * tick if known else None,
        "system_ns": (cpu[2] + cpu[5] + cpu[6]) * tick if known else None,
        "io_wait_ns": cpu[4] * tick if known else None,
        "cpu_ns": sum((*cpu[:3], *cpu[5:7])) * tick if known else None,
        "load_average": float(load[0]) if load else None,
        "available_bytes": _available(proc / "meminfo"),
        "shared_memory_bytes": None if room is None else room.size - room.free,
        "shared_memory_free_bytes": None if room is None else room.free,
        "cpu_stall_ns": _stall(proc / "pressure" / "cpu"),
        "io_stall_ns": _stall(proc / "pressure" / "io"),
        "received_bytes": _received(proc / "net" / "dev"),
    }


def accounts_delays(proc: Path = PROC) -> bool:
    """Whether this kernel accounts delays of block I/O (off by default since Linux 5.14)."""
    return (_text(proc / "sys" / "kernel" / "task_delayacct") or "").strip() == "1"


def _cpu_ns(pid: int) -> int | None:
    """CPU time of all threads of a process, to the nanosecond."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except (OSError, OverflowError, AttributeError):
        return None


def _io(path: Path) -> dict[str, int | None]:
    found = _pairs(path)
    return {"read_bytes": found.get("rchar"), "storage_bytes": found.get("read_bytes")}


def _switches(path: Path) -> dict[str, int | None]:
    found = _pairs(path)
    return {
        "voluntary_switches": found.get("voluntary_ctxt_switches"),
        "involuntary_switches": found.get("nonvoluntary_ctxt_switches"),
    }


def _pairs(path: Path) -> dict[str, int]:
    found = {}
    for line in (_text(path) or "").splitlines():
        name, _, value = line.partition(":")
        if value.strip().isdecimal():
            found[name] = int(value)
    return found


def _available(path: Path) -> int | None:
    for line in (_text(path) or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _stall(path: Path) -> int | None:
    """Time in which some process waited for this resource, by pressure stall information."""
    first = (_text(path) or "").partition("\n")[0]
    _, _, total = first.partition("total=")
    return int(total) * 1000 if total.strip().isdecimal() else None


def _received(path: Path) -> int | None:
    total = None
    for line in (_text(path) or "").splitlines()[2:]:
        name, _, values = line.partition(":")
        if name.strip() != "lo":
            total = (total or 0) + int(values.split()[0])
    return total


def _text(path: Path) -> str | None:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(file, 65536).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(file)
