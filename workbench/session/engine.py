"""What a session drives; the session itself may be forgotten while this still runs."""

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from workbench.errors import ProfilerBusyError
from workbench.recording.ownership import claim
from workbench.recording.telemetry import Telemetry
from workbench.session.board import Board
from workbench.session.burst_run import BurstReader
from workbench.session.course import Course
from workbench.session.live import Live
from workbench.session.orders import Orders
from workbench.session.stopping import LOADING, Ended
from workbench.session.thread_state import ThreadState
from workbench.session.watching import Watcher
from workbench.session.worker import work_through
from workbench.settings import Record, Settings
from workbench.workload import Workload
from workbench.workload.async_exceptions import Stages

WHAT = "a session"
_AGAIN_S = 0.25
"""So often code that must end is broken off anew: it may have caught the exception."""


class Engine:
    """Starts and ends the thread that trains; for calls from any thread.

    Args:
        work: What is trained.
        settings: In force at first.
        record: What bursts record.
        folder: Where Runs are kept.
        name: Beginning of their names; the workload's when left out.
    """

    def __init__(
        self, work: Workload, settings: Settings, record: Record, folder: Path, name: str | None
    ) -> None:
        self.board = Board(settings)
        self.orders = Orders(self.board)
        self.telemetry = Telemetry()
        self.watcher = Watcher()
        code = Stages(Ended)
        self.live = Live(
            work=work,
            folder=folder,
            record=record,
            board=self.board,
            orders=self.orders,
            course=Course(work, self.telemetry, code),
            telemetry=self.telemetry,
            reader=BurstReader(name or work.title, folder),
            watcher=self.watcher,
            code=code,
        )
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def is_here(self) -> bool:
        """Whether the calling thread is the one that trains."""
        return threading.current_thread() is self._thread

    def overhead_ratio(self) -> float | None:
        """Step time with telemetry over step time without it."""
        course = self.live.course
        cost, total = course.cost_ns + self.live.sampled_ns(), course.steps_ns
        return None if total <= 0 or cost >= total else total / (total - cost)

    def start(self, *, running: bool, single: int = 0) -> None:
        """Begin or go on; ``single`` steps and then a pause where it is not ``running``.

        Raises:
            ProfilerBusyError: Something else profiles or trains under us in this process.
        """
        board, orders = self.board, self.orders
        with board.changed:
            if self.alive:
                if orders.ending:
                    raise ProfilerBusyError(
                        "this session is still stopping: start it again when that is done."
                    )
                if board.status == "failed":
                    board.trouble(None)
                    board.status, board.doing = "running", "Going on."
                orders.go(running=running, single=single)
                return
            owner = claim(WHAT)
            orders.begin()
            orders.go(running=running, single=single)
            self._process = os.getpid()
            self._thread = owner.thread = threading.Thread(
                target=self._run, args=(ThreadState(),), name="workbench-session", daemon=True
            )
            self.live.owner = owner
            board.status, board.doing = "running", "Getting ready."
            board.trouble(None)
            atexit.register(self._at_exit)
            try:
                self._thread.start()
            except BaseException:
                owner.release()
                self._thread = None
                board.status = "ready"
                raise

    def ask(self, settings: Settings) -> None:
        """These settings from the next step on, or from the start on."""
        self.orders.ask(settings)
        self._settle()

    def undo(self) -> bool:
        """Back to before the last change; tells whether there was one."""
        undone = self.orders.undo()
        self._settle()
        return undone

    def _settle(self) -> None:
        """What nobody takes up because nothing runs is in force at once."""
        with self.board.changed:
            asked = None if self.alive else self.orders.take_settings()
            if asked is not None:
                self.board.settings = asked.settings
        self.board.tell("state")

    def end(self, *, keep: bool, timeout_s: float) -> bool:
        """End the training; tells whether its thread is gone."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return True
        self.orders.end(keep=keep)
        if threading.current_thread() is thread:
            return False
        if self.orders.trial is not None:
            self.orders.trial.cancel()
        until = time.monotonic() + timeout_s
        # A step that is broken off half-way must not be in weights that are kept.
        thread.join(timeout_s * (0.8 if keep else 0.25))
        code = self.live.code
        while thread.is_alive() and time.monotonic() < until:
            if code.name == LOADING:
                for worker in self.live.course.workers():
                    with suppress(OSError, ValueError, AttributeError):
                        worker.terminate()
            code.send()
            thread.join(_AGAIN_S)
        return not thread.is_alive()

    def wait_until(self, done: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until ``done()`` or the end of the training."""
        self.board.wait_until(lambda: done() or not self.alive, timeout_s)
        return done()

    def _run(self, state: ThreadState) -> None:
        board = self.board
        status = work_through(self.live, state)
        self.live.close()
        atexit.unregister(self._at_exit)
        how = "Everything is as it was before."
        if self.orders.keep:
            how = "The trained weights were kept."
        if not self.live.whole:
            how = "Not everything could be put back: see the error, and make model and data anew."
        with board.changed:
            board.status, board.doing = status, f"The session has ended. {how}"
            board.changed.notify_all()
        board.tell("state")

    def _at_exit(self) -> None:
        if os.getpid() == self._process:  # not in a forked child
            self.end(keep=False, timeout_s=5.0)
