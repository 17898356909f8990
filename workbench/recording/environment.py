"""What a Run remembers of where it was recorded: nothing that names a person or a place."""

from datetime import datetime
from typing import Any


def environment() -> dict[str, Any]:
    """Versions, usable processors and devices, as ``workbench.machine`` tells them."""
    from workbench import machine
    from workbench.machine.processor import processor

    return {
        **machine.versions(),
        "processor": processor(),
        "usable_cpus": machine.usable_cpus(),
        "devices": [
            {"index": d.index, "type": d.type, "name": d.name, "memory_bytes": d.memory_bytes}
            for d in machine.devices()
        ],
    }


def dtype_costs(effective: dict[str, Any], settings: Any) -> list[dict[str, Any]] | None:
    """What each type costs on the run's device; asked for anew only where precision was switched.

    Otherwise only what this machine knows already is told, since asking takes seconds.
    """
    from workbench import machine

    device = str(effective.get("device") or "cpu")
    switched = (settings.precision or "fp32") != "fp32"
    found = machine.probe(device) if switched else machine.known_probe(device)
    return None if found is None else [each.to_json() for each in found]


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
