"""What the kernel counts for one thread, read in a few microseconds."""

import os
import threading
from collections.abc import Sequence
from operator import sub
from typing import NamedTuple

from workbench.recording.loader.layout import MISSING

_BLOCK = 512
"""Bytes of a block in the resource usage of Linux."""


class Detail(NamedTuple):
    """Counters of the calling thread; their differences tell what it did meanwhile."""

    run_delay_ns: int = MISSING
    """Time it was ready to run and no processor was free."""
    read_bytes: int = MISSING
    """Bytes that its read calls gave, from storage or from the page cache."""
    read_calls: int = MISSING
    storage_bytes: int = MISSING
    """Bytes that had to come from storage, through read calls or memory-mapped pages."""
    major_faults: int = MISSING
    voluntary_switches: int = MISSING
    involuntary_switches: int = MISSING

    def since(self, before: "Detail") -> "Detail":
        """What was added since ``before``."""
        if MISSING in self or MISSING in before:
            return Detail(
                *(
                    MISSING if MISSING in (now, then) else now - then
                    for now, then in zip(self, before, strict=True)
                )
            )
        return Detail(*map(sub, self, before))


NOTHING = Detail()


class Counters:
    """Reads the counters of the thread that made it, through files that it keeps open."""

    def __init__(self) -> None:
        self._delay = _open("/proc/thread-self/schedstat")
        self._io = _open("/proc/thread-self/io")

    def read(self) -> Detail:
        """The counters now; what this kernel does not count is missing."""
        read_bytes = read_calls = MISSING
        delay = self.delay()
        if self._io >= 0:
            lines = os.pread(self._io, 256, 0).split()
            read_bytes, read_calls = int(lines[1]), int(lines[5])
        return Detail(delay, read_bytes, read_calls, *_usage())

    def delay(self) -> int:
        """Time ready to run with no processor free, alone."""
        if self._delay < 0:
            return MISSING
        return run_delay_ns(os.pread(self._delay, 128, 0).split())

    def close(self) -> None:
        """Close the files."""
        for file in (self._delay, self._io):
            if file >= 0:
                os.close(file)
        self._delay = self._io = -1


class Delay:
    """Reads how long the thread that made it was ready with no processor free."""

    def __init__(self) -> None:
        self._file = _open("/proc/thread-self/schedstat")

    def read(self) -> int:
        """Since the thread began; missing where this kernel does not count."""
        if self._file < 0:
            return MISSING
        try:
            return run_delay_ns(os.pread(self._file, 128, 0).split())
        except (OSError, ValueError):  # closed just now by the thread that ends the probes
            return MISSING

    def close(self) -> None:
        """Close the file; any thread may."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self.close()


class ThreadDelay(threading.local):
    """A :class:`Delay` for each thread that asks, which ends with its thread."""

    def __init__(self) -> None:
        super().__init__()
        self._delay = Delay()
        self._before = MISSING

    def begin(self) -> None:
        """Count from now on."""
        self._before = self._delay.read()

    def since(self) -> int | None:
        """What was added since then; ``None`` where it is not counted."""
        now = self._delay.read()
        return None if MISSING in (self._before, now) else now - self._before

    def close(self) -> None:
        """Close the file of the calling thread."""
        self._delay.close()


def run_delay_ns(schedstat: Sequence[bytes | str]) -> int:
    """Time spent ready to run; a kernel that does not count it says ``0 0 0`` of every thread."""
    counted = len(schedstat) > 1 and int(schedstat[0]) > 0
    return int(schedstat[1]) if counted else MISSING


def _usage() -> tuple[int, int, int, int]:
    try:
        import resource
    except ImportError:  # Windows
        return MISSING, MISSING, MISSING, MISSING
    who = getattr(resource, "RUSAGE_THREAD", None)
    if who is None:  # macOS counts only whole processes
        return MISSING, MISSING, MISSING, MISSING
    used = resource.getrusage(who)
    return used.ru_inblock * _BLOCK, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw


def _open(path: str) -> int:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return -1
    try:
        os.pread(file, 128, 0)
    except OSError:  # some sandboxes list the file and refuse to tell
        os.close(file)
        return -1
    return file
