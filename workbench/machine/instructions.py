"""Instructions that this process executes, counted by the processor where Linux allows it.

A load on the machine makes steps longer and executes not one instruction more of theirs, so that a
count tells a change of the code where times tell nothing (perf_event_open(2)).
"""

import ctypes
import os
import platform
import struct

_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
"""Of the system call perf_event_open."""
_HARDWARE, _INSTRUCTIONS = 0, 1
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_SIZE = 112
"""Of ``perf_event_attr`` in its fifth version."""


class Instructions:
    """A running count over this thread and everything that it starts from now on.

    ``available`` is false, and every reading ``None``, where the system, the container or the
    processor does not allow it.
    """

    def __init__(self) -> None:
        self._file = _open()

    @property
    def available(self) -> bool:
        """Whether anything is counted."""
        return self._file is not None

    def read(self) -> int | None:
        """Instructions outside the kernel so far."""
        if self._file is None:
            return None
        data = os.read(self._file, 8)
        return int(struct.unpack("q", data)[0]) if len(data) == 8 else None

    def close(self) -> None:
        """Count no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _open() -> int | None:
    number = _NUMBERS.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        return None
    flags = _INHERIT | _NO_KERNEL | _NO_HYPERVISOR
    head = struct.pack("IIQQQQQ", _HARDWARE, _SIZE, _INSTRUCTIONS, 0, 0, 0, flags)
    attributes = ctypes.create_string_buffer(head.ljust(_SIZE, b"\0"), _SIZE)
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
        file = call(ctypes.c_long(number), attributes, 0, -1, -1, ctypes.c_ulong(0))
    except (OSError, AttributeError):
        return None
    return int(file) if file >= 0 else None
