"""What takes longer than a message may: done one after the other beside the kernel's threads."""

import threading
from collections import deque
from collections.abc import Callable

Errand = Callable[[], None]


class Errands:
    """Runs errands in order on a thread that lives only while there are any."""

    def __init__(self) -> None:
        self._waiting: deque[Errand] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, errand: Errand) -> None:
        """Do this after those that wait already; an errand shows its own errors."""
        with self._lock:
            if self._closed:
                return
            self._waiting.append(errand)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="workbench-panel-errands", daemon=True
                )
                self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing is left to do; tells whether that came to be."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout=timeout_s)
        return thread is None or not thread.is_alive()

    def close(self, timeout_s: float = 10.0) -> None:
        """Drop what waits, and let the one under way end."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=timeout_s)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                errand = self._waiting.popleft()
            errand()
