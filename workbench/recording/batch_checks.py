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
LOOKED_BYTES = 4096
"""Of each sample's tensors so much goes into its print."""
COMPARED_EACH = 8
COMPARED_MOST = 64
"""Batches that are compared: for each worker, and in all."""
DISTINCT = 0.9
"""Own choice: samples of one batch of which fewer differ are too alike to recognise one again."""


class BatchChecks:
    """Looks at the first batches of a loop, outside of the waits for them.

    Args:
        loader: What is in force: ``workers``, ``prefetch_factor`` and ``iterable``.
        room: Reads the shared memory; the machine's when left out.
    """

    def __init__(
        self,
        loader: Mapping[str, Any],
        room: Callable[[], SharedMemory | None] | None = None,
    ) -> None:
        self._workers = loader.get("workers") or 0
        self._prefetch = loader.get("prefetch_factor") or 2
        self._compares = bool(loader.get("iterable")) and self._workers > 1
        self._room = room or shared_memory
        self._batches = 0
        self._seen: set[bytes] = set()
        self._samples = self._repeated = 0
        self._alike = False
        self._shared: dict[str, Any] | None = None

    def look(self, batch: Any, epoch: int) -> bool:
        """Look at a batch of an epoch; returns whether to be shown the next one."""
        if not self._batches:
            self._shared = self._check_room(batch)
        self._batches += 1
        if not self._compares or epoch:  # the next epoch repeats the first one rightly
            return False
        self._compare(batch)
        return self._batches < min(COMPARED_MOST, COMPARED_EACH * self._workers)

    def to_json(self, *, batches_in_epoch: int | None = None) -> dict[str, Any]:
        """For ``run.json``; each is ``None`` where it was not asked or cannot be told.

        ``shared_memory`` (``batch_bytes``, ``need_bytes``, ``free_bytes``, ``size_bytes``),
        ``repetition`` (``samples`` compared, ``repeated`` of them), ``batches_in_epoch``.
        """
        known = self._samples and not self._alike
        compared = {"samples": self._samples, "repeated": self._repeated}
        return {
            "shared_memory": self._shared,
            "repetition": compared if known else None,
            "batches_in_epoch": batches_in_epoch,
        }

    def _check_room(self, batch: Any) -> dict[str, Any] | None:
        """Shared memory that the batches made ready need, and a warning when it is too little."""
        room, size = self._room(), bytes_in(batch)
        if not self._workers or room is None or not size:
            return None
        need = size * (self._workers * self._prefetch + 1)  # and the one that the step works on
        if need > FULL * room.free:
            _warn(
                f"{self._workers} workers × {self._prefetch} batches of {bytes_text(size)} need "
                f"{bytes_text(need)} of shared memory, {share_text(need / max(room.free, 1))} of "
                f"the {bytes_text(room.free)} that is free in /dev/shm: expect a bus error. Give "
                "the container more (docker run --shm-size=8g), or use fewer workers or a smaller "
                "prefetch_factor."
            )
        return {
            "batch_bytes": size,
            "need_bytes": need,
            "free_bytes": room.free,
            "size_bytes": room.size,
        }

    def _compare(self, batch: Any) -> None:
        marks = fingerprints(batch)
        if len(set(marks)) < DISTINCT * len(marks):
            self._alike = True  # samples that are all alike tell nothing
        self._samples += len(marks)
        self._repeated += sum(mark in self._seen for mark in marks)
        self._seen.update(marks)


def fingerprints(batch: Any) -> list[bytes]:
    """A short print of each sample's numbers; empty where a batch holds none that are at hand."""
    from workbench.workload.placement import samples_in, tensors_of

    count = samples_in(batch)
    if not count:
        return []
    prints = [hashlib.blake2b(digest_size=12) for _ in range(count)]
    try:
        rows = [t for t in tensors_of(batch) if t.dim() and t.shape[0] == count]
        for tensor in rows:
            flat = tensor.detach().cpu().reshape(count, -1)
            flat = flat[:, : LOOKED_BYTES // max(tensor.element_size(), 1)].contiguous()
            for mark, row in zip(prints, flat, strict=True):
                mark.update(row.view(torch.uint8).numpy().tobytes())
    except Exception:  # noqa: BLE001 - sparse, quantized, or a class of the user's own
        return []
    return [mark.digest() for mark in prints]


def _warn(text: str) -> None:
    """Say it at once: what follows may end in a crash. Nobody's filter makes an error of it."""
    with suppress(UserWarning):
        warnings.warn(text, UserWarning, stacklevel=2)
