"""A process with all that it starts, ended whole whatever groups its children are in."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress

GRACE_S = 3.0


def end_tree(process: subprocess.Popen[bytes], *, grace_s: float = GRACE_S) -> None:
    """Ask the process and its descendants to end, then make them.

    mpirun gives every rank a process group of its own, so that a signal to one group is not enough;
    descendants are listed first, since those of a process that is gone are nobody's.
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
