"""A loop around a loader with the probes on."""

import time
from collections.abc import Iterator
from typing import Any

from workbench.recording.loader.recorder import LoaderRecorder
from workbench.workload.shutdown import shut_down


def take(recorder: LoaderRecorder, loader: Any, most: int = 1000) -> Iterator[Any]:
    """Batches of one epoch, their waits told to the probes as our own loops do."""
    probe = recorder.probe
    iterator = probe.iterate(loader, lambda: iter(loader))
    try:
        for step in range(most):
            probe.step, began = step, time.monotonic_ns()
            try:
                batch = next(iterator)
            except StopIteration:
                probe.without_batch()
                probe.waited(began, time.monotonic_ns())
                return
            probe.waited(began, time.monotonic_ns())
            yield batch
    finally:
        if not getattr(loader, "persistent_workers", False):
            shut_down(iterator)


def record(loader: Any, most: int = 1000) -> tuple[list[Any], LoaderRecorder]:
    """The batches of one epoch, and what was recorded of them."""
    with LoaderRecorder() as recorder:
        batches = list(take(recorder, loader, most))
    return batches, recorder
