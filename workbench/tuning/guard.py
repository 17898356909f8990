"""Refuse what would not fit into memory, before it is tried."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.settings import Settings
from workbench.units import bytes_text

WORKER_BYTES = 60_000_000
"""Of a worker process beside its batches: own pages of an interpreter that was forked."""
COPIES = 3
"""A batch, its activations and its gradients: the least that training on it holds."""
USABLE = 0.9
"""Share of what is free that an estimate may fill."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """Bytes that are free; ``None`` where the system does not tell."""

    host: int | None = None
    shared: int | None = None
    device: int | None = None


@dataclass(frozen=True, kw_only=True)
class Appetite:
    """What the loop was seen to take, as a start for estimates; ``None``: not measured."""

    batch_bytes: int | None = None
    grown_bytes: int | None = None
    """By how much this process grew while the loop ran."""
    device_bytes: int | None = None


def room(device: str) -> Room:
    """What is free now on the host, in /dev/shm and on the device."""
    from workbench.machine import shared_memory
    from workbench.tuning.memory import available_bytes

    shared = shared_memory()
    return Room(
        host=available_bytes(),
        shared=None if shared is None else shared.free,
        device=_device_free(device),
    )


def too_much(
    change: Settings, effective: Mapping[str, Any], appetite: Appetite, free: Room
) -> str | None:
    """Why a change would not fit, with the estimate; ``None`` if it may.

    Args:
        change: What is to be tried.
        effective: What is in force without it: ``batch_size``, ``workers``, ``prefetch_factor``
            and ``device``.
        appetite: What the loop takes without it.
        free: What is left.
    """
    workers = _number(change.workers, effective.get("workers"))
    prefetch = _number(change.prefetch_factor, effective.get("prefetch_factor")) or 2
    times = _number(change.batch_size, effective.get("batch_size")) / max(
        _number(effective.get("batch_size")), 1
    )
    batch = (appetite.batch_bytes or 0) * max(times, 1.0)
    waiting = workers * prefetch * batch
    before = _number(effective.get("workers")) * _number(effective.get("prefetch_factor"))
    more = max(times - 1.0, 0.0)
    activations = more * max(appetite.grown_bytes or 0, COPIES * (appetite.batch_bytes or 0))
    started = max(workers - _number(effective.get("workers")), 0) * WORKER_BYTES
    host = started + waiting - before * (appetite.batch_bytes or 0)
    on_device = appetite.device_bytes is not None
    needs = (
        ("memory", host + (0 if on_device else activations), free.host),
        ("shared memory (/dev/shm)", waiting, free.shared),
        ("device memory", more * (appetite.device_bytes or 0), free.device),
    )
    for where, need, left in needs:
        if left is not None and need > USABLE * left:
            return (
                f"needs about {bytes_text(need)} more of {where}, of which {bytes_text(left)} "
                "are free"
            )
    return None


def _number(*values: Any) -> int:
    """The first that is known; 0 without any."""
    return next((int(value) for value in values if value is not None), 0)


def _device_free(device: str) -> int | None:
    if not device.startswith("cuda"):
        return None
    import torch

    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free) + int(held)
