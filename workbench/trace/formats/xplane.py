"""XLA profiles (``*.xplane.pb``) of JAX, PyTorch/XLA and TensorFlow.

Operations of a TPU core and kernels of a GPU's streams are device work; an operation that holds
others (a loop, a call) is an annotation around them, so that nothing counts twice.
"""

from collections import Counter
from collections.abc import Iterator

from workbench.errors import TraceError
from workbench.trace.formats.content import Bytes, Content
from workbench.trace.formats.protobuf import WireError, varint
from workbench.trace.formats.records import EPOCH_NS, Records
from workbench.trace.formats.xla_names import device_of_plane
from workbench.trace.formats.xplane_device import Runs, add_device_plane
from workbench.trace.formats.xplane_host import HostWaiting, add_host_plane, settle
from workbench.trace.formats.xplane_messages import (
    LINE_LIMIT,
    Plane,
    Span,
    plane_name,
    planes,
    read_plane,
)
from workbench.trace.table import Trace

_REPLACED = "\ufffd".encode()
_MANGLED_SHARE = 0.05
_LOOKED_AT = 1 << 20
_PLANE_TAG = b"\n"


def is_xplane(head: bytes, name: str) -> bool:
    """Whether a file is an XSpace: its first field is a plane that has a plane's name."""
    if name.lower().endswith(".xplane.pb"):
        return not head.lstrip().startswith((b"<", b"{", b"version https://git-lfs"))
    if not head.startswith(_PLANE_TAG):
        return False
    try:
        _, start = varint(head, 1, len(head))
        found = plane_name(head, Span(start, len(head)))
    except WireError:
        return False
    return found == "Task Environment" or found.startswith(("/host:", "/device:"))


def read_xplane(content: Content) -> Trace:
    """Read an XSpace; planes that are damaged are left out and counted.

    Raises:
        TraceError: No plane in it can be read.
    """
    data = content.whole()
    records = Records(content.name)
    waiting, runs, seen = HostWaiting(), Runs(), Counter[str]()
    started: int | None = None
    damage: list[WireError] = []
    lines = 0
    for span in _planes(data, records, damage):
        try:
            plane = read_plane(data, span)
            seen[plane.name] += 1
            lines = _counted(lines, plane, span)
            started = _start(plane) if started is None else started
            _add(records, data, plane, waiting, runs, again=seen[plane.name] - 1)
        except WireError as error:
            damage.append(error)
    if damage:
        if not seen:
            raise _unreadable(content.name, data, damage[0])
        records.left_out(
            len(damage), f"planes, the first at byte {damage[0].offset:,}: {damage[0].why}"
        )
    settle(records, waiting, runs)
    return records.finish(base_ns=started)


def _counted(lines: int, plane: Plane, span: Span) -> int:
    lines += len(plane.lines)
    if lines > LINE_LIMIT:
        raise WireError(span.start, f"there are more than {LINE_LIMIT:,} lines")
    return lines


def _planes(data: Bytes, records: Records, damage: list[WireError]) -> Iterator[Span]:
    """The whole planes; where the file ends inside one, that is noted."""
    found = planes(data, len(data))
    while True:
        try:
            yield next(found)
        except StopIteration:
            return
        except WireError as error:
            if error.cut:
                records.notes.truncated(len(data), "a plane is cut")
            damage.append(error)
            return


def _add(
    records: Records, data: Bytes, plane: Plane, waiting: HostWaiting, runs: Runs, *, again: int
) -> None:
    device = device_of_plane(plane.name)
    if again:
        plane.name = f"{plane.name} ({again + 1})"
        if device is not None:
            device = device[0], max(records.devices, default=-1) + 1
    if device is not None:
        add_device_plane(records, data, plane, device, runs)
    else:
        add_host_plane(records, data, plane, waiting)


def _start(plane: Plane) -> int | None:
    """Unix time at which the profile began, from the plane that tells it."""
    told = plane.stats.get("profile_start_time")
    return told if isinstance(told, int) and told > EPOCH_NS else None


def _unreadable(name: str, data: Bytes, error: WireError) -> TraceError:
    look = bytes(data[:_LOOKED_AT])
    if look.count(_REPLACED) * len(_REPLACED) > _MANGLED_SHARE * len(look):
        return TraceError(
            f"{name} was read as text and saved again: every byte above 127 was replaced, "
            "and nothing can restore it. Copy the file again in binary."
        )
    return TraceError(
        f"{name} cannot be read as an XLA profile (xplane.pb): at byte {error.offset:,}, "
        f"{error.why}. Copy the file again, or profile again; the trace.json.gz beside it may be "
        "whole."
    )
