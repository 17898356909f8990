"""At most four messages a second and 100 kB: what is sent is always the latest state."""

import threading
import time
from collections.abc import Callable

LEAST_S = 0.25
BYTES_PER_S = 80_000
"""Of ours; what Jupyter puts around a message comes on top (about 1.5 kB each)."""
AROUND_BYTES = 1500
LINGER_S = 1.0
"""The thread ends after so long without anything to do, and begins again when needed."""


class Sender:
    """Calls ``send`` from a thread of its own, at a bounded rate, for as long as there is need.

    Args:
        send: Sends what is new and returns how many bytes that were; 0 for nothing.
        active: Whether something new may come without being told.
        failed: Told of an error of ``send``, which then is tried again.
    """

    def __init__(
        self,
        send: Callable[[], int],
        *,
        active: Callable[[], bool],
        failed: Callable[[Exception], object],
    ) -> None:
        self._send = send
        self._active = active
        self._failed = failed
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False

    def poke(self) -> None:
        """Something is new: it is sent as soon as the rate allows."""
        self._wake.set()
        with self._lock:
            if self._closed or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(
                target=self._run, name="workbench-panel-sender", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Send nothing more; the thread ends."""
        self._closed = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)

    def _run(self) -> None:
        idle_since = time.monotonic()
        while not self._closed:
            active = self._active()
            woken = self._wake.wait(timeout=0 if active else LEAST_S)
            self._wake.clear()
            now = time.monotonic()
            if woken or active:
                idle_since = now
                self._pause(self._once())
            elif now - idle_since > LINGER_S and self._retired():
                return

    def _once(self) -> int:
        try:
            return self._send()
        except Exception as error:  # noqa: BLE001 - the edge: it is shown in the status line
            self._failed(error)
            return 0

    def _pause(self, size: int) -> None:
        """Leave the time that these bytes take at the rate allowed."""
        share = (size + AROUND_BYTES) / BYTES_PER_S if size else 0.0
        until = time.monotonic() + max(LEAST_S, share)
        while not self._closed and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, LEAST_S))

    def _retired(self) -> bool:
        """End this thread, unless somebody asked for it in this very moment."""
        with self._lock:
            if self._wake.is_set():
                return False
            self._thread = None
            return True
