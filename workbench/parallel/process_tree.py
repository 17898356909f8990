"""A program with all that it starts, ended whole whatever groups its children are in.

Its parent is a warden: mpirun gives every rank a process group of its own, so that a signal to one
group is not enough, and a caller that is killed can send none.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from workbench.parallel import warden


def start_tree(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    log: IO[bytes],
    *,
    folder: Path,
    given: int | None = None,
    answers: int | None = None,
    at: Path | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own: an interrupt of the notebook is ours to pass on.

    It ends, with everything below it, when :func:`let_go` is called or this process is gone.

    Args:
        arguments: The program and what it is given.
        environment: All of its environment.
        log: Where it writes.
        folder: Is removed when it is ended before it was done.
        given: Number of an open file that it reads; nothing when none is named.
        answers: Where its output goes instead of the log, as ``subprocess`` takes it.
        at: Its current folder; by default ours.
    """
    return subprocess.Popen(  # noqa: S603 - our own interpreter, or mpirun from PATH
        [
            *(sys.executable, "-P", warden.__file__, str(folder)),
            *("-" if given is None else str(given), *arguments),
        ],
        stdin=subprocess.PIPE,
        stdout=log if answers is None else answers,
        stderr=log,
        start_new_session=True,
        env=dict(environment),
        cwd=at,
        pass_fds=() if given is None else (given,),
    )


def let_go(process: "subprocess.Popen[bytes]") -> None:
    """End what :func:`start_tree` started, and wait until it is gone; doing it twice is fine."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    process.wait()
