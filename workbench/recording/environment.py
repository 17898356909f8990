"""What a Run remembers of where it was recorded: nothing that names a person or a place."""

from datetime import datetime
from typing import Any


def environment() -> dict[str, Any]:
    """Versions, usable processors and devices, as ``workbench.machine`` tells them."""
    from workbench import machine

    return {
        **machine.versions(),
        "usable_cpus": machine.usable_cpus(),
        "devices": [
            {"index": d.index, "type": d.type, "name": d.name, "memory_bytes": d.memory_bytes}
            for d in machine.devices()
        ],
    }


def seeds() -> dict[str, Any]:
    """Seeds of the random generators, as far as they can be asked."""
    import torch

    return {
        "torch": torch.initial_seed(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def now() -> str:
    """Local time with offset, ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
