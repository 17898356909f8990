"""Time that one sample spends in file reads, seen through the calls that leave Python.

While a sample is looked at, the interpreter tells of every call of a C function. Those that read
or open files are timed. What reads inside other C code is not seen: memory-mapped pages, readers
written in C++, helper threads. Such time shows as wall time without CPU time, and so does waiting
for a socket: no faster disk ends it.
"""

import io
import mmap
import os
import socket
import sys
import time
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from workbench.recording.loader.layout import MISSING

CALLS_LEAST = 1_500
"""Calls of one sample that are always listened to (decoding an image makes a few hundred)."""
USUAL_CALL_NS = 200
"""What listening to a call costs, where a profile function of the user's keeps us from trying."""

PAUSE_LEAST_NS = 20_000
"""Off its processor for less, a thread has not waited long for one, and the kernel is not asked."""

_METHODS = frozenset({"read", "read1", "readinto", "readinto1", "readline", "readlines", "readall"})
_FUNCTIONS = frozenset(
    {"open", "read", "pread", "preadv", "readv", "sendfile", "stat", "lstat", "scandir", "listdir"}
    | {"fromfile", "open_code"}
)
_NAMES = _METHODS | _FUNCTIONS
_FILES = (io.BufferedReader, io.BufferedRandom, io.FileIO, io.TextIOWrapper, mmap.mmap)
_MODULES = frozenset({os.name, "posix", "nt", "_io", "io", "builtins"})


class Reads:
    """Times reads between :meth:`begin` and :meth:`end`; used again and again on one thread.

    Args:
        delay: Tells how long the thread was ready with no processor free, all in all.
    """

    def __init__(self, delay: Callable[[], int] = lambda: MISSING) -> None:
        self.calls = 0
        self.delay_ns = MISSING
        """How long the reads were ready with no processor free; missing where nobody tells."""
        self._delay = delay
        self._known = (0, 0, 0)
        """When the delay was asked for last, on both clocks, and the answer."""
        self._file: Callable[[], Any] = lambda: None
        self._device = MISSING
        """The file that was read last, held weakly, and the device number of its file system."""
        self._by_device: dict[int, int] = {}
        """Time in reads by file system; those of unknown ones are left out."""
        self._calls_most = CALLS_LEAST
        self._ns = 0
        self._cpu_ns = 0
        self._within: tuple[str, Any] | None = None
        self._began = 0
        self._cpu_began = 0

    @property
    def file_system(self) -> int:
        """Device number of the file system that most of the time was read from."""
        return max(self._by_device, key=self._by_device.__getitem__, default=MISSING)

    def begin(self, calls_most: int = CALLS_LEAST) -> None:
        """Start to listen, unless another profile function is set on this thread.

        Args:
            calls_most: After so many calls looking closely is given up for this sample.
        """
        self._calls_most = max(calls_most, CALLS_LEAST)
        self.calls = self._ns = self._cpu_ns = 0
        self._by_device.clear()
        self._within = None
        delay = self._delay()
        self._known = time.monotonic_ns(), time.thread_time_ns(), delay
        self.delay_ns = MISSING if delay == MISSING else 0
        if sys.getprofile() is None:
            sys.setprofile(self._event)

    def end(self) -> tuple[int, int]:
        """Stop; nanoseconds in reads and the CPU time in them, missing when it was given up.

        A profile function that the user's own code has set meanwhile stays.
        """
        heard, self._within = self.abandon(), None
        return (self._ns, self._cpu_ns) if heard else (MISSING, MISSING)

    def abandon(self) -> bool:
        """Stop where an interrupt has left it on; returns whether it listened until now."""
        heard = sys.getprofile() == self._event
        if heard:
            sys.setprofile(None)
        return heard

    def _event(self, frame: Any, kind: str, function: Any) -> None:
        """Called by the interpreter; an error here would come up in the user's own code."""
        self.calls += 1
        try:
            if kind == "c_call":
                self._enter(function)
            elif self._within is not None and kind not in {"call", "return"}:
                self._leave(function)
        except Exception:  # noqa: BLE001 - objects of any kind are asked for their names
            self.calls = self._calls_most + 1
        if self.calls > self._calls_most:
            sys.setprofile(None)

    def _enter(self, function: Any) -> None:
        if self._within is not None:
            return
        name = getattr(function, "__name__", "")
        if name in _NAMES and _reads(function, name):
            self._look(function.__self__)
            self._within = name, function.__self__
            self._ask(time.monotonic_ns(), time.thread_time_ns())
            self._cpu_began = time.thread_time_ns()
            self._began = time.monotonic_ns()

    def _leave(self, function: Any) -> None:
        # A method is bound anew for its return, so it is known by its name and owner.
        within = self._within
        if within is not None and function.__name__ == within[0] and function.__self__ is within[1]:
            now, cpu = time.monotonic_ns(), time.thread_time_ns()
            took = now - self._began
            self._ns += took
            if self._device != MISSING:
                self._by_device[self._device] = self._by_device.get(self._device, 0) + took
            self._cpu_ns += cpu - self._cpu_began
            self._within = None
            if self.delay_ns != MISSING:
                self.delay_ns += self._ask(now, cpu)

    def _ask(self, now: int, cpu: int) -> int:
        """What the delay has grown by, asked only where the thread was off its processor."""
        if self.delay_ns == MISSING:
            return 0
        then, cpu_then, before = self._known
        if now - then - (cpu - cpu_then) < PAUSE_LEAST_NS:
            return 0
        delay = self._delay()
        self._known = now, cpu, delay
        return delay - before

    def _look(self, owner: Any) -> None:
        """Know where a file lies, asked once a file; files made of other files are not asked."""
        owner = getattr(owner, "buffer", owner)
        raw = getattr(owner, "raw", owner)
        if type(raw) is not io.FileIO or raw.closed:
            self._device = MISSING
        elif self._file() is not raw or self._device == MISSING:
            self._file = weakref.ref(raw)  # the user's own closes with its last name
            self._device = os.fstat(raw.fileno()).st_dev


def _reads(function: Any, name: str) -> bool:
    owner = function.__self__
    if owner is None or isinstance(owner, ModuleType):
        where = getattr(owner, "__name__", None) or function.__module__ or ""
        return name == "fromfile" or (name in _FUNCTIONS and where in _MODULES)
    return name in _METHODS and isinstance(owner, _FILES) and not _of_socket(owner)


def _of_socket(owner: Any) -> bool:
    """Whether a file is a socket's, such as the answer of a web server."""
    owner = getattr(owner, "buffer", owner)
    return isinstance(getattr(owner, "raw", None), socket.SocketIO)


def call_cost_ns(times: int = 300) -> int:
    """What listening adds to one call of a C function here."""
    numbers = list(range(times))

    def run() -> int:
        began = time.perf_counter_ns()
        for number in numbers:
            abs(number)
        return time.perf_counter_ns() - began

    reads = Reads()
    run()
    plain = min(run() for _ in range(2))
    heard = []
    for _ in range(2):
        reads.begin()
        try:
            took = run()
        finally:
            listened = reads.abandon()
        if listened:
            heard.append(took)
    return max(1, (min(heard) - plain) // (2 * times)) if heard else USUAL_CALL_NS
