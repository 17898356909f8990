"""What the first batches of a run tell: whether they fit into shared memory, whether they repeat.

A container's /dev/shm of 64 MB is full long before an epoch ends, and an iterable data set that
does not divide itself gives every sample once for each worker. Both are seen in the first batches.
"""

import hashlib
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch

from workbench.machine.dev_shm import SharedMemory, shared_memory
from workbench.recording.loader.sizes import bytes_in
from workbench.units import bytes_text, share_text

FULL = 0.8
"""Own choice: share of the free shared memory above which batches made ready may not fit."""
LOOKED_BYTES = 65_536
"""Of each tensor so much goes into the print of its batch."""
PRINTED_MOST = 64
"""Batches whose prints are compared."""


class BatchChecks:
    """Looks at the first batches of a loop, outside of what is measured.

    Args:
        loader: What is in force: ``workers``, ``prefetch_factor``, ``iterable``,
            ``divides_itself`` and ``batches_per_epoch``, where they are known.
        room: Reads the shared memory.
    """

    def __init__(
        self,
        loader: Mapping[str, Any],
        room: Callable[[], SharedMemory | None] = shared_memory,
    ) -> None:
        self._loader = loader
        self._room = room
        self._seen = 0
        self._prints: set[bytes] = set()
        self._repeated = 0
        self._shared: dict[str, Any] | None = None

    @property
    def _workers(self) -> int:
        return self._loader.get("workers") or 0

    def look(self, batch: Any) -> bool:
        """Look at a batch; returns whether to be shown the next one."""
        if not self._seen:
            self._shared = self._check_room(batch)
        self._seen += 1
        return self._look_for_repetition(batch)

    def to_json(self) -> dict[str, Any]:
        """For ``run.json``: ``shared_memory`` and ``repetition``, each ``None`` where not asked."""
        looked = len(self._prints) + self._repeated
        return {
            "shared_memory": self._shared,
            "repetition": {"batches": looked, "repeated": self._repeated} if looked else None,
        }

    def _check_room(self, batch: Any) -> dict[str, Any] | None:
        """Shared memory that the batches made ready need, and a warning when it is too little."""
        room, size = self._room(), bytes_in(batch)
        if not self._workers or room is None or not size:
            return None
        prefetch = self._loader.get("prefetch_factor") or 2
        need = size * (self._workers * prefetch + 1)  # and the one that the step works on
        found = {
            "batch_bytes": size,
            "need_bytes": need,
            "free_bytes": room.free,
            "size_bytes": room.size,
        }
        if need > FULL * room.free:
            _warn(
                f"{self._workers} workers × {prefetch} batches of {bytes_text(size)} need "
                f"{bytes_text(need)} of shared memory, {share_text(need / max(room.free, 1))} of "
                f"the {bytes_text(room.free)} that is free in /dev/shm: expect a bus error. Give "
                "the container more (docker run --shm-size=8g), or use fewer workers or a smaller "
                "prefetch_factor."
            )
        return found

    def _look_for_repetition(self, batch: Any) -> bool:
        if not self._loader.get("iterable") or self._workers < 2:
            return False
        mark = fingerprint(batch)
        if mark is None:
            return False
        self._repeated += mark in self._prints
        self._prints.add(mark)
        return self._seen < min(PRINTED_MOST, 8 * self._workers)


def fingerprint(batch: Any) -> bytes | None:
    """A short print of a batch's numbers; ``None`` where it holds none that are at hand."""
    from workbench.workload.placement import tensors_of

    found = hashlib.blake2b(digest_size=16)
    tensors = [tensor for tensor in tensors_of(batch) if tensor.device.type == "cpu"]
    try:
        for tensor in tensors:
            found.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
            numbers = tensor.detach().flatten()[: LOOKED_BYTES // max(tensor.element_size(), 1)]
            found.update(numbers.contiguous().view(torch.uint8).numpy().tobytes())
    except RuntimeError:  # sparse or quantized: not laid out as numbers
        return None
    return found.digest() if tensors else None


def _warn(text: str) -> None:
    """Say it at once: what follows may end in a crash. Nobody's filter makes an error of it."""
    with suppress(UserWarning):
        warnings.warn(text, UserWarning, stacklevel=2)
