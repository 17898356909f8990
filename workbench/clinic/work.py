"""Work of a known size, which the planted faults do."""

import hashlib
import os
import threading
import time
from contextlib import suppress

_HASHED = bytes(30_000)
"""Some tens of microseconds."""


def burn(seconds: float) -> None:
    """Use that much processor time of this thread, in Python."""
    end = time.thread_time_ns() + int(seconds * 1e9)
    while time.thread_time_ns() < end:
        sum(range(2_000))


def burn_natively(seconds: float) -> None:
    """The same in native code that leaves Python's lock to other threads, as decoders do."""
    end = time.thread_time_ns() + int(seconds * 1e9)
    while time.thread_time_ns() < end:
        hashlib.sha256(_HASHED).digest()


def far_read(payload: bytes, latency_s: float) -> bytes:
    """The payload, read from a pipe whose other end answers after so many seconds.

    As from storage at the other end of a network, the reader waits in ``read`` and uses no
    processor; and it does so on every machine, whatever its page cache holds.
    """
    if latency_s <= 0:
        return payload
    reading, writing = os.pipe()
    with open(reading, "rb") as answer, open(writing, "wb") as question:  # noqa: PTH123 - no paths

        def serve() -> None:
            time.sleep(latency_s)
            with suppress(OSError, ValueError):  # the reader was interrupted and has closed it
                question.write(payload)
                question.close()

        server = threading.Thread(target=serve, name="far-storage", daemon=True)
        server.start()
        data = answer.read()
        server.join()
    return data
