"""Device properties for traces of formats that have no such header."""

from typing import Any

from workbench.trace.header import OUR_TYPE
from workbench.trace.table import Device, Trace

_PROPERTIES = "deviceProperties"


def described_devices(trace: Trace) -> dict[str, Any]:
    """The header entry that describes the trace's devices, for a header that lacks it."""
    if _PROPERTIES in trace.header or not trace.devices:
        return {}
    return {_PROPERTIES: [_properties(device) for device in trace.devices]}


def _properties(device: Device) -> dict[str, Any]:
    found: dict[str, Any] = {"id": device.index, "name": device.name, OUR_TYPE: device.type}
    if device.memory_bytes is not None:
        found["totalGlobalMem"] = device.memory_bytes
    if device.arch:
        found["gcnArchName"] = device.arch
    return found
