"""Hold interrupts back while something must be finished."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from workbench.workload.async_exceptions import hold, release
from workbench.workload.worker_death import explain_worker_death

_GIVE_UP = 3
"""So many interrupts and a block that hangs is left."""


class Deferred:
    """Deliver an interrupt, a time limit, and news of a dead worker after the block, not inside.

    The third interrupt is obeyed at once: what must be finished may hang. A time limit waits for
    half a minute at most.

    Torch tells of a worker process that died by an error out of its handler of SIGCHLD, in whatever
    line the main thread is just then. Only the main thread receives signals; exceptions that other
    threads send are held back in any. Where handlers were not set from Python, the block runs as it
    is.

    Args:
        deaths: Whether torch may still tell of a dead worker when the block is done; where a loop
            is over nobody waits for one any more.
    """

    def __init__(self, *, deaths: bool = True) -> None:
        self._deaths = deaths
        self._held: list[_Held] = []
        self._holds = False

    def __enter__(self) -> Self:
        try:
            hold()
            self._holds = True
            if threading.current_thread() is threading.main_thread():
                self._hold_signals()
        except BaseException:  # it came before it could be held back
            self.__exit__(None, None, None)
            raise
        return self

    def _hold_signals(self) -> None:
        numbers = [signal.SIGINT, *([signal.SIGCHLD] if hasattr(signal, "SIGCHLD") else [])]
        for number in numbers:
            self._held.append(_Held(number, signal.getsignal(number)))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._holds:
            self._holds = False
            release()
        held, self._held = self._held, []
        try:
            for one in held[:1]:
                one.let_go()  # from here on an interrupt may come at any line
        finally:
            for one in held[1:]:
                one.let_go()
        try:
            for one in held[1:]:
                one.deliver(quietly=not self._deaths)
        finally:  # an interrupt that came as well has the last word
            for one in held[:1]:
                one.deliver(quietly=False)


class _Held:
    """One signal, held back from now on."""

    def __init__(self, number: int, previous: Any) -> None:
        self._number = number
        self._previous = previous
        self._pending = False
        self._times = 0
        self._holding = callable(previous)
        self._handler: Callable[[int, FrameType | None], None] = self._on_signal
        if self._holding:
            signal.signal(number, self._handler)

    def let_go(self) -> None:
        """Give the handler its place back, unless another one was put on top meanwhile."""
        self._holding = False
        if signal.getsignal(self._number) is self._handler:
            signal.signal(self._number, self._previous)

    def deliver(self, *, quietly: bool) -> None:
        """Call the handler if the signal came."""
        pending, self._pending = self._pending, False
        if not pending:
            return
        try:
            self._previous(self._number, None)
        except RuntimeError as error:
            if not quietly or explain_worker_death(error) is None:
                raise

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._times += 1
        insisted = number == signal.SIGINT and self._times >= _GIVE_UP
        if self._holding and not insisted:
            self._pending = True
        else:
            self._pending = False
            self._previous(number, frame)
