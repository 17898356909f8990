"""The profiled window: torch.profiler started, marked, stopped and exported without surprises.

We mark the steps ourselves instead of giving torch a schedule: the window can then end after any
step, torch has nothing to warn about between cycles, and nothing is post-processed in Python.
"""

import atexit
import json
import os
import shutil
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from workbench.errors import ProfilerBusyError, RunError
from workbench.recording.devices import activities
from workbench.recording.loader.clock import ranges_in
from workbench.recording.memory_history import memory_history
from workbench.recording.ownership import refuse_foreign_profiler
from workbench.recording.quiet import quiet_kineto
from workbench.recording.thread_end import at_thread_end, forget_at_thread_end
from workbench.settings import Record
from workbench.store.memory import snapshot_beside


class State(Enum):
    """Where a window is in its life; it never goes back."""

    NEW = 0
    PREPARED = 1
    RECORDING = 2
    STOPPED = 3
    EXPORTED = 4


class Window:
    """One recording of torch.profiler; every call must come from the thread that made it.

    When the user's own code starts a torch profiler inside the window, ours ends there and gives
    way: theirs must never come out empty, and two at once crash torch.
    """

    def __init__(self, record: Record, device_type: str | None) -> None:
        self.state = State.NEW
        self.gave_way = False
        """Whether a profiler of the user's took over."""
        self.messages: list[str] = []
        """Warnings and errors of Kineto, such as missing permission."""
        self.input_ranges: list[tuple[int, int]] = []
        """Start and end of every wait for input in the exported trace, in Unix nanoseconds."""
        self._record = record
        self._device_type = device_type
        self._thread = os.getpid(), threading.get_ident()
        self._user_trace: Any = None
        self._profiler: Any = None
        self._step: Any = None
        self._number: int | None = None
        self._hooks: dict[str, Any] = {}
        self._open: list[Any] = []
        """Ranges of the user's that were entered and not left yet."""
        self._history = memory_history(record.memory, device_type)
        self._aside: tempfile.TemporaryDirectory[str] | None = None
        self._at_exit = partial(_forget, weakref.ref(self))

    def prepare(self) -> None:
        """Set the profiler up; on a device one step may pass before ``start`` to settle it."""
        from torch.profiler.profiler import _KinetoProfile

        refuse_foreign_profiler()
        self._profiler = _KinetoProfile(
            activities=activities(self._device_type),
            record_shapes=self._record.shapes,
            profile_memory=self._record.memory,
            with_stack=self._record.stacks,
            with_modules=self._record.modules,
        )
        self._quietly(self._profiler.prepare_trace)
        self.state = State.PREPARED
        self._watch_for_others()

    def start(self) -> None:
        """Begin to record."""
        if self.state is not State.PREPARED:
            return  # it gave way
        self._unwatch()
        self._user_trace = sys.getprofile()  # recording stacks takes its place
        self._quietly(self._profiler.start_trace)
        self._history.start()
        self.state = State.RECORDING
        self._watch_for_others()

    def begin_step(self, number: int) -> None:
        """The step ``number`` begins; what comes before it belongs to no step."""
        if self.state is State.RECORDING:
            from torch.autograd.profiler import record_function

            self._step, self._number = record_function(f"ProfilerStep#{number}"), number
            self._step.__enter__()

    def end_step(self) -> None:
        """The step is complete."""
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = self._number = None

    @contextmanager
    def range(self, label: str) -> Iterator[None]:
        """A named range in the recording; one that is open when it stops ends there.

        Left open, it would end in the next recording, which torch's own code does not always
        survive: it crashed now and then where a pilot ended inside a range.
        """
        from torch.autograd.profiler import record_function

        mark: Any = record_function(label)
        mark.__enter__()
        self._open.append(mark)
        try:
            yield
        finally:
            if mark in self._open:
                self._open.remove(mark)
                mark.__exit__(None, None, None)

    def _end_ranges(self) -> None:
        while self._open:
            self._open.pop().__exit__(None, None, None)

    def stop(self) -> None:
        """End the recording; a step that is still open is marked as partial. May be repeated."""
        if self.state not in (State.PREPARED, State.RECORDING):
            return
        self._unwatch()
        if os.getpid() != self._thread[0]:  # a forked child: the recording is its parent's
            self.state = State.STOPPED
            return
        self._end_ranges()
        self._history.stop()
        self.messages += self._history.messages
        if self.state is State.PREPARED:
            self._quietly(self._profiler.start_trace)
        step, self._step = self._step, None
        if step is not None:
            partial = json.dumps({"partial_step": self._number})
            self._profiler.add_metadata_json("workbench", partial)
        self._quietly(self._profiler.stop_trace)
        _put_back(self._user_trace)
        if step is not None:
            step.__exit__(None, None, None)  # only now: the trace then says "finished": false
        self.state = State.STOPPED

    def set_aside(self) -> None:
        """Take the trace out of torch now; afterwards any thread may export it, from a file."""
        if self.state is not State.STOPPED or self._aside is not None:
            return
        profiler, self._profiler = self._profiler, None
        aside = tempfile.TemporaryDirectory(prefix="workbench-")
        raw = Path(aside.name) / _RAW
        try:
            self._quietly(partial(profiler.export_chrome_trace, str(raw)))
        except BaseException:
            aside.cleanup()
            raise
        self._aside = aside

    @property
    def is_aside(self) -> bool:
        """Whether the trace waits in a file to be exported."""
        return self._aside is not None

    def export(self, path: Path) -> int:
        """Write the trace, compressed, and return its size before compression. Once only.

        ``input_ranges`` then holds the waits for input in it.

        Kineto writes the place of its file into the trace, so it goes through a temporary folder:
        nobody's folders need be told.
        """
        with self._exported() as raw:
            self.input_ranges = ranges_in(raw)
            igzip: Any = import_module("isal.igzip")
            with raw.open("rb") as source, igzip.open(path, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            if self._history.data is not None:
                snapshot_beside(path).write_bytes(self._history.data)
            return raw.stat().st_size

    def measure(self) -> int:
        """Size of the trace in bytes, without keeping it."""
        with self._exported() as raw:
            return raw.stat().st_size

    @contextmanager
    def _exported(self) -> Iterator[Path]:
        if self.state is not State.STOPPED:
            raise RunError("there is no recording to export: it was not stopped, or is exported.")
        self.set_aside()
        aside, self._aside = self._aside, None
        if aside is None:
            raise AssertionError("the trace was set aside just now")
        self.state = State.EXPORTED
        with aside as folder:
            raw = Path(folder) / _RAW
            if not raw.is_file():
                raise RunError(f"torch could not write its trace to {raw}: is that disk full?")
            yield raw

    def _quietly(self, call: Callable[[], object]) -> None:
        """Run torch's code without its noise, and whatever a user's filter makes of warnings."""
        with quiet_kineto() as messages, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
        self.messages += messages

    def _watch_for_others(self) -> None:
        from torch.autograd import profiler

        atexit.register(self._at_exit)  # torch crashes when a process ends while it records
        at_thread_end(self._at_exit)  # or when the recording's thread has ended before
        for name in _STARTS:
            if hasattr(profiler, name):
                self._hooks[name] = getattr(profiler, name)
                setattr(profiler, name, self._giving_way(name))

    def _unwatch(self) -> None:
        from torch.autograd import profiler

        atexit.unregister(self._at_exit)
        forget_at_thread_end(self._at_exit)
        for name, function in self._hooks.items():
            setattr(profiler, name, function)
        self._hooks = {}

    def _giving_way(self, name: str) -> Callable[..., Any]:
        real, recording = self._hooks[name], weakref.ref(self)

        def start(*args: Any, **kwargs: Any) -> Any:
            window = recording()
            if window is not None:
                window._give_way()
            return real(*args, **kwargs)

        return start

    def _give_way(self) -> None:
        if threading.get_ident() != self._thread[1]:
            raise ProfilerBusyError(
                "workbench is recording in another thread of this process, and two profilers at "
                "once crash torch: start yours when the recording has ended."
            )
        self.gave_way = True
        self.stop()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """A window that was forgotten must not record for ever.

        When the interpreter ends, this module's names may be gone before its windows.
        """
        if not is_finalizing():
            self._forget()

    def _forget(self) -> None:
        # From another thread torch would crash.
        if (os.getpid(), threading.get_ident()) == self._thread:
            self.stop()


def _put_back(trace: Any) -> None:
    """Set a user's profile function again, such as cProfile's, where recording removed it."""
    if trace is None or sys.getprofile() is not None:
        return
    if callable(trace):
        sys.setprofile(trace)
    elif hasattr(trace, "enable"):
        trace.enable()


def _forget(window: weakref.ref[Window]) -> None:
    left = window()
    if left is not None:
        left._forget()


_RAW = "trace.json"

_STARTS = ("_prepare_profiler", "_run_on_profiler_start")
"""What every torch profiler (scheduled, legacy, NVTX) calls before it starts."""


def warm_up() -> None:
    """Import what the first profiler of a process needs (1 to 3 s) before anything is timed.

    The compiler notes the place of its cache in the environment then; it finds it without that.
    """
    import torch

    before = dict(os.environ)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if hasattr(torch, "_inductor"):
                import torch._inductor.config
    finally:
        for name in set(os.environ) - set(before):
            if name.startswith(("TORCH", "TRITON")):
                del os.environ[name]
