"""Opens named pipes without waiting for ever for somebody who writes."""

import os
import select
from pathlib import Path
from typing import BinaryIO, cast

from workbench.errors import TraceError

WAIT_S = 60.0
"""How long a pipe may stay silent before its first byte."""


def open_pipe(path: Path) -> BinaryIO:
    """Open a pipe once something was written to it.

    Raises:
        TraceError: Nobody writes.
    """
    file = cast("BinaryIO", open(path, "rb", buffering=0, opener=_without_waiting))  # noqa: SIM115
    poll = select.poll()
    poll.register(file, select.POLLIN | select.POLLHUP)
    try:
        written = poll.poll(WAIT_S * 1000)
    except BaseException:
        file.close()
        raise
    if not written:
        file.close()
        raise TraceError(
            f"{path} is a pipe that nobody writes to: nothing came within {WAIT_S:g} s."
        )
    os.set_blocking(file.fileno(), True)
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
