"""Folders of side files, named by the process that made them, so that those of dead ones can go."""

import os
import re
import shutil
import tempfile
from pathlib import Path

PREFIX = "workbench-loader-"
_NAME = re.compile(re.escape(PREFIX) + r"([0-9a-f]+)-(\d+)-(\d+)-")
"""Where its owner's number counts, the number, and the owner's start."""
PROC = Path("/proc")


def make_folder() -> Path:
    """A new folder of this process, after those of processes that were killed are gone.

    Raises:
        OSError: There is no room, or no right, to make one.
    """
    sweep()
    began, place = started(os.getpid()), namespace()
    known = began is not None and place is not None
    owner = f"{place}-{os.getpid()}-{began}-" if known else ""
    return Path(tempfile.mkdtemp(prefix=PREFIX + owner))


def sweep(where: Path | None = None) -> list[Path]:
    """Delete the folders of processes that are gone; returns them.

    Only folders of this user, of processes of this machine and container, whose number is free or
    was given to a later process. Without ``/proc`` nobody can tell, and nothing is deleted.
    """
    place, gone = namespace(), list[Path]()
    if place is None or started(os.getpid()) is None:
        return gone
    try:
        found = list(Path(where or tempfile.gettempdir()).glob(PREFIX + "*"))
    except OSError:
        return gone
    for path in found:
        match = _NAME.match(path.name)
        if match is None or match[1] != place or not _is_mine(path):
            continue
        if not _lives(int(match[2]), int(match[3])):
            shutil.rmtree(path, ignore_errors=True)
            gone.append(path)
    return gone


def namespace() -> str | None:
    """What numbers of processes count in: this start of this machine, and this container."""
    try:
        boot = (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().replace("-", "")[:8]
        return f"{boot}{(PROC / 'self' / 'ns' / 'pid').stat().st_ino:x}"
    except OSError:
        return None


def started(pid: int) -> int | None:
    """When a process began, in the kernel's ticks since the machine did; ``None``: not known."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _lives(pid: int, began: int) -> bool:
    """Whether the owner may still run; where its start is hidden from us it may."""
    if not (PROC / str(pid)).exists():
        return _answers(pid)  # /proc may hide the processes of others
    now = started(pid)
    return now is None or now == began


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_mine(path: Path) -> bool:
    try:
        about = path.lstat()
    except OSError:
        return False
    return path.is_dir() and not path.is_symlink() and about.st_uid == os.getuid()
