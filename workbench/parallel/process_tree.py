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
    arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes], *, folder: Path
) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own: an interrupt of the notebook is ours to pass on.

    It ends, with everything below it, when :func:`end_tree` is called or this process is gone.

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


def end_tree(process: "subprocess.Popen[bytes]") -> None:
    """End what still runs of it, and wait until it is gone; doing it twice is fine."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    process.wait()
