"""Hold a keyboard interrupt back while something must be finished."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class Deferred:
    """Deliver a keyboard interrupt after the block instead of inside it.

    Only the main thread receives interrupts; elsewhere, and where the handler was not set from
    Python, the block runs as it is.
    """

    def __init__(self) -> None:
        self._previous: object = None
        self._pending = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if callable(previous):
                self._previous = previous
                signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        previous, self._previous = self._previous, None
        if not callable(previous):
            return
        signal.signal(signal.SIGINT, previous)
        if self._pending:
            self._pending = False
            previous(signal.SIGINT, None)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._pending = True
