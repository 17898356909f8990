"""Tells worker processes to stop recording: one byte that all of them map."""

import mmap
import os
from pathlib import Path

_ON, _OFF = b"\1", b"\0"


class Switch:
    """One byte in a file; the processes that open it see a change at once."""

    def __init__(self, path: Path, *, make: bool = False) -> None:
        flags = os.O_RDWR | (os.O_CREAT if make else 0)
        file = os.open(path, flags, 0o600)
        try:
            if make:
                os.write(file, _ON)
            self._map = mmap.mmap(file, 1)
        finally:
            os.close(file)

    @property
    def is_on(self) -> bool:
        """Whether to record."""
        return self._map[0] == 1

    def turn_off(self) -> None:
        """Let every process stop at its next batch."""
        self._map[:1] = _OFF

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()
