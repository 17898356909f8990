"""What the planes, lines and names of an XLA profile mean, as tables.

Sources: the plane and line names of XLA's profiler (xplane_schema), and the profiles of JAX,
PyTorch/XLA and TensorFlow. The Chrome JSON that XLA writes has the same names: a plane is a process
there, a line is a thread.
"""

import re
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import Kind


class Line(IntEnum):
    """What the events of a line of a device are."""

    STREAM = 0
    """Kernels and copies of one stream of a GPU."""
    OPERATIONS = 1
    """Compiled operations of a core, one after the other or inside one another."""
    ASYNCHRONOUS = 2
    """Copies and collectives that run beside the operations."""
    MODULES = 3
    """Runs of whole compiled programs."""
    DERIVED = 4
    """Steps, scopes and source lines: what the work belongs to, and no work itself."""


DEVICE_PLANE = re.compile(r"/device:(TPU|GPU):(\d{1,4})(?!\d)")
HOST_PLANES = ("/host:", "/python")
"""How planes of the host begin."""

_STREAM = re.compile(r"Stream #(\d+)")
_RUNTIME = re.compile(r"(cuda|hip)[A-Z]\w*$")
_DRIVER = re.compile(r"cu[A-Z]\w*$")
_COPY = re.compile(
    r"memcpy|__amd_rocclr_copy|(copy|async-copy|copy-start|copy-done|infeed|outfeed)([.-]\d+)*$"
    r"|(slice|dynamic-slice)-(start|done)([.-]\d+)*$",
    re.I,
)
_SET = re.compile(r"memset|__amd_rocclr_fill", re.I)


def device_of_plane(name: str) -> tuple[str, int] | None:
    """``TPU`` or ``GPU`` and the number of a device's plane; ``None`` for every other plane."""
    match = DEVICE_PLANE.match(name)
    return (match.group(1), int(match.group(2))) if match else None


def line_of(name: str) -> Line:
    """What a line of a device holds, by its name."""
    if _STREAM.match(name):
        return Line.STREAM
    if name == "XLA Ops":
        return Line.OPERATIONS
    if name == "Async XLA Ops":
        return Line.ASYNCHRONOUS
    return Line.MODULES if name == "XLA Modules" else Line.DERIVED


def work_lines(lines: set[Line]) -> tuple[Line, ...]:
    """Which lines of a device are its work.

    A GPU's operations are derived from its streams: where there are streams, only they are work.
    """
    return (Line.STREAM,) if Line.STREAM in lines else (Line.OPERATIONS, Line.ASYNCHRONOUS)


def stream_of(name: str, otherwise: int) -> int:
    """The number of a stream from the name of its line."""
    match = _STREAM.match(name)
    return min(int(match.group(1)), 2**31 - 1) if match else otherwise


@lru_cache(maxsize=65536)
def work_kind(name: str) -> Kind:
    """Whether device work of this name is a copy, a set, or a kernel."""
    if _SET.match(name):
        return Kind.MEMSET
    return Kind.MEMCPY if _COPY.match(name) else Kind.KERNEL


@lru_cache(maxsize=65536)
def host_kind(name: str, operation: bool) -> Kind:
    """What a record of a host thread is; ``operation`` when it names the operation it runs."""
    if name.startswith("$"):
        return Kind.PYTHON
    if _RUNTIME.match(name):
        return Kind.RUNTIME
    if _DRIVER.match(name):
        return Kind.DRIVER
    internal = operation or "::" in name or name.startswith(("Pjit", "PjRt", "Xla", "Thunk"))
    return Kind.OPERATOR if internal else Kind.ANNOTATION


def holding(ts: NDArray[np.int64], dur: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which operations of one line hold the next one: loops, branches and calls."""
    holds = np.zeros(len(ts), bool)
    order = np.lexsort((-dur, ts))
    start, end = ts[order], ts[order] + dur[order]
    inside = (start[1:] < end[:-1]) & (end[1:] <= end[:-1]) & (end[1:] > start[1:])
    holds[order[:-1][inside]] = True
    return holds
