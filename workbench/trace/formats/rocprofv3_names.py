"""What the numbers in a rocprofv3 result stand for: agents, kernels, operations, messages."""

import re
from dataclasses import dataclass

from workbench.trace.formats.json_lists import entries, entry
from workbench.trace.formats.rocprofv3_schema import (
    Agent,
    KernelSymbol,
    Message,
    Operations,
    Process,
    Strings,
)
from workbench.trace.table import Device

_GPU = 2
_LARGEST_DEVICE = 2**15
_LONGEST_NAME = 4096
_DIRECTION = re.compile(r"MEMORY_COPY_(HOST|DEVICE)_TO_(HOST|DEVICE)")


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The names of one process."""

    devices: dict[int, Device]
    numbers: dict[int, int]
    """Number of the device of each GPU's handle."""
    kernels: dict[int, str]
    operations: list[Operations]
    messages: dict[int, str]

    def kernel(self, number: int) -> str:
        """A kernel's name."""
        return self.kernels.get(number) or f"kernel {number}"

    def call(self, kind: int, operation: int | str, correlation: int) -> str:
        """The name of a call, or what a range was called by the user."""
        name = self._operation(kind, operation)
        if name.startswith("roctx") or not name:
            return self.messages.get(correlation) or name or f"operation {operation}"
        return name

    def copy(self, kind: int, operation: int | str) -> str:
        """A copy's name as Kineto writes it."""
        match = _DIRECTION.match(self._operation(kind, operation))
        return f"Memcpy {match.group(1)[0]}to{match.group(2)[0]}" if match else "Memcpy"

    def _operation(self, kind: int, operation: int | str) -> str:
        if isinstance(operation, str):
            return operation[:_LONGEST_NAME]
        if 0 <= kind < len(self.operations):
            names = self.operations[kind].operations
            if 0 <= operation < len(names):
                return str(names[operation])[:_LONGEST_NAME]
        return ""


def labels_of(process: Process) -> Labels:
    """The names of a process; what is missing or odd is left out."""
    strings = entry(process.strings, Strings)
    agents, _ = entries(process.agents, Agent)
    symbols, _ = entries(process.kernel_symbols, KernelSymbol)
    devices, numbers = _devices([agent for agent in agents if agent.type == _GPU])
    return Labels(
        devices=devices,
        numbers=numbers,
        kernels={
            symbol.kernel_id: (symbol.formatted_kernel_name or symbol.kernel_name)[:_LONGEST_NAME]
            for symbol in symbols
        },
        operations=entries(strings.buffer_records, Operations)[0],
        messages={
            message.key: message.value[:_LONGEST_NAME]
            for message in entries(strings.marker_api, Message)[0]
        },
    )


def _devices(gpus: list[Agent]) -> tuple[dict[int, Device], dict[int, int]]:
    """GPUs by their number among the GPUs, else in the order of the file."""
    devices: dict[int, Device] = {}
    numbers: dict[int, int] = {}
    for position, gpu in enumerate(gpus[:_LARGEST_DEVICE]):
        told = gpu.logical_node_type_id
        free = 0 <= told < _LARGEST_DEVICE and told not in devices
        index = told if free else position
        numbers[gpu.id.handle] = index
        devices[index] = Device(
            index=index,
            type="hip",
            name=gpu.product_name[:_LONGEST_NAME],
            arch=gpu.name[:_LONGEST_NAME],
        )
    return devices, numbers
