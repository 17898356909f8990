"""The parent of a launcher: ends it and all its ranks when the caller is gone, or says so.

Run as ``python -P warden.py FOLDER INPUT COMMAND...``, with a pipe as its own input; INPUT is the
number of an inherited file that the command reads, or ``-`` for none. The end of that pipe is
the word to end everything: a caller that is killed says it without doing anything. It imports
nothing of ours and no torch, so that it is there at once and cannot hang.
"""

import ctypes
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

LOOK_S = 0.05
LIST_S = 0.5
"""Own choice: the list reads every process of the machine, which a measurement would feel."""
GRACE_S = 1.0
_ADOPT_ORPHANS = 36
"""``PR_SET_CHILD_SUBREAPER`` of Linux: ranks whose launcher dies become our children."""


def main(folder: Path, given: int, command: list[str]) -> int:
    """Run the command; its exit code, or 1 when it was ended from outside."""
    _adopt_orphans()
    parent = os.getppid()
    process = subprocess.Popen(command, stdin=given)  # noqa: S603 - our own
    ranks = set[int]()
    told, listed = False, 0.0
    while process.poll() is None and not told:
        told = _told(LOOK_S) or os.getppid() != parent
        if time.monotonic() - listed > LIST_S:
            ranks |= {each.pid for each in _descendants()}
            listed = time.monotonic()
    ranks |= _end_all()
    _free_shared_memory(ranks)
    if told:
        shutil.rmtree(folder, ignore_errors=True)
        return 1
    return process.returncode or 0


def _told(seconds: float) -> bool:
    """Whether the caller closed its end of the pipe; it never writes."""
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)


def _descendants() -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process().children(recursive=True)
    return []


def _end_all() -> set[int]:
    """Ask everything below us to end, then make it; returns the numbers of the processes."""
    met = set[int]()
    deadline = time.monotonic() + GRACE_S
    asked = set[int]()
    while left := [each for each in _descendants() if _runs(each)]:
        met |= {each.pid for each in left}
        late = time.monotonic() > deadline
        for each in left:
            with suppress(psutil.Error):
                if late:
                    each.kill()
                elif each.pid not in asked:
                    each.terminate()
        asked |= met
        time.sleep(0.02)
    return met


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
        with suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
    return False


def _free_shared_memory(ranks: set[int]) -> None:
    """Remove what killed processes left there; torch names its files by the process."""
    there = Path("/dev/shm")  # noqa: S108 - not a file that we make
    for number in ranks:
        for left in there.glob(f"torch_{number}_*"):
            with suppress(OSError):
                left.unlink()


if __name__ == "__main__":
    given = subprocess.DEVNULL if sys.argv[2] == "-" else int(sys.argv[2])
    sys.exit(main(Path(sys.argv[1]), given, sys.argv[3:]))
