"""A program with all that it starts, ended whole whatever groups its children are in.

Its parent is a warden: mpirun gives every rank a process group of its own, so that a signal to one
group is not enough, and a caller that is killed can send none.
"""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from workbench.parallel import warden


def start_tree(
    arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes], *, folder: Path
) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own: an interrupt of the notebook is ours to pass on.

    It ends, with everything below it, when :func:`let_go` is called or this process is gone.

    Args:
        arguments: The program and what it is given.
        environment: All of its environment.
        log: Where it writes.
        folder: Is removed when it is ended before it was done.
    """
    return subprocess.Popen(  # noqa: S603 - our own interpreter, or mpirun from PATH
        [sys.executable, "-P", warden.__file__, str(folder), *arguments],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=dict(environment),
    )


def let_go(process: "subprocess.Popen[bytes]") -> None:
    """End what :func:`start_tree` started, and wait until it is gone; doing it twice is fine."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    process.wait()


GRACE_S = 3.0


def end_tree(process: "subprocess.Popen[bytes]", *, grace_s: float = GRACE_S) -> None:
    """Ask a process without a warden and its descendants to end, then make them.

    For one whose pipes its caller talks through. Descendants are listed first, since those of a
    process that is gone are nobody's.
    """
    import psutil

    tree = []
    with suppress(psutil.Error):
        own = psutil.Process(process.pid)
        tree = [*own.children(recursive=True), own]
    for each in tree:
        with suppress(psutil.Error):
            each.terminate()
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and any(map(_runs, tree)):
        process.poll()
        time.sleep(0.02)
    for each in tree:
        with suppress(psutil.Error):
            each.kill()
    process.wait()


def _runs(process: object) -> bool:
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
