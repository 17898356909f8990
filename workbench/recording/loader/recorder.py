"""Everything about a run's input: put on, taken off, and written beside its trace."""

import weakref
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workbench.recording.loader import merge
from workbench.recording.loader.clock import measured_offset, system_offset
from workbench.recording.loader.context import ProbedContext
from workbench.recording.loader.overhead import overhead
from workbench.recording.loader.probe import LoaderProbe
from workbench.recording.loader.processes import accounts_delays
from workbench.recording.loader.storage import network_mounts, storage
from workbench.recording.loader.system import SystemSampler
from workbench.store.columns import write_columns
from workbench.store.loader import (
    BATCH_COLUMNS,
    BATCH_INSTANTS,
    LOADER_FILE,
    SYSTEM_COLUMNS,
    SYSTEM_FILE,
)


class LoaderRecorder:
    """The loader's probes and the samples of the system, for the length of a measurement.

    Args:
        on: Whether to record at all.
    """

    def __init__(self, *, on: bool = True) -> None:
        contexts: list[ProbedContext] = []
        self._sampler = SystemSampler(partial(_running, contexts))
        self.probe = LoaderProbe(self._sampler.wake, contexts)
        # A capture that is never left, and the end of the interpreter.
        weakref.finalize(self, _end, self._sampler, self.probe)
        self._on = on
        self.batches: list[merge.Row] = []
        """One row a batch, on CLOCK_MONOTONIC; there once it has finished."""
        self.workers: list[merge.Row] = []
        """One row a worker process, likewise."""
        self._finished = False

    def start(self) -> None:
        """Begin to record loaders that start from now on."""
        if self._on:
            try:
                self.probe.start()
                self._sampler.start()
            except BaseException:
                _end(self._sampler, self.probe)
                raise

    def finish(self) -> None:
        """Take everything off and keep what was recorded; doing it twice is fine."""
        if self._finished:
            return
        self._finished = True
        try:
            try:
                self.probe.rest()
            finally:
                self._sampler.stop()
            self.batches = merge.batches(self.probe)
            self.workers = merge.workers(self.probe)
        finally:
            self.probe.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish()

    def write(self, folder: Path, ranges: Sequence[tuple[int, int]]) -> dict[str, Any] | None:
        """Write ``loader.arrow`` and ``system.arrow``; returns what ``run.json`` keeps of them.

        Args:
            folder: The Run's folder.
            ranges: Waits for input in its trace, for the offset of the clocks.
        """
        if not self._on:
            return None
        offset = measured_offset(ranges, self.probe.waits, system_offset())
        batches = merge.shifted(self.batches, BATCH_INSTANTS, offset.ns)
        instants = ("created_ns", "entered_ns", "ready_ns")
        epochs = [asdict(epoch) for epoch in self.probe.epochs]
        about = {
            "clock_offset_ns": offset.ns,
            "clock_error_ns": offset.error_ns,
            "clock_source": offset.source,
            **overhead(self.batches),
            "sampler_cpu_ns": self._sampler.cost_ns,
        }
        beside = {
            "workers": merge.shifted(self.workers, instants, offset.ns),
            "epochs": merge.shifted(epochs, ("start_ns",), offset.ns),
        }
        if batches:
            write_columns(folder / LOADER_FILE, batches, BATCH_COLUMNS, about | beside)
        rows = merge.shifted(self._sampler.rows, ("at_ns",), offset.ns)
        write_columns(folder / SYSTEM_FILE, rows, SYSTEM_COLUMNS, self._facts())
        return about | {"batches": len(batches)}

    @property
    def processes(self) -> list[Any]:
        """Worker processes of loaders that were started while it recorded, dead ones as well."""
        return [process for context in self.probe.contexts for process in context.processes]

    def _facts(self) -> dict[str, Any]:
        """What does not change during a run."""
        from workbench.machine import cpu_limits
        from workbench.machine.nvidia import nvidia_devices

        limits = cpu_limits()
        found: dict[int, int] = {}
        for row in self.batches:
            for item in row.get("items", ()):
                if item["file_system"] is not None:
                    read = item["read_bytes"] or 0
                    found[item["file_system"]] = found.get(item["file_system"], 0) + read
        return {
            "cpus_total": limits.total,
            "cpus_affinity": limits.affinity,
            "cpus_quota": limits.quota,
            "cpus_usable": limits.usable,
            "block_delay_accounted": accounts_delays(),
            "gpus": [found.name for found in nvidia_devices() or ()],
            "network_mounts": network_mounts(),
            "storage": [
                storage(device).to_json() | {"read_bytes": read}
                for device, read in sorted(found.items(), key=lambda pair: -pair[1])
            ],
        }


def _running(contexts: Sequence[ProbedContext]) -> list[tuple[int, int, int]]:
    """Stream, number and process of the workers that run."""
    return [
        (context.stream, number, pid)
        for context in list(contexts)
        for number, pid in context.running()
    ]


def _end(sampler: SystemSampler, probe: LoaderProbe) -> None:
    try:
        probe.stop()
    finally:
        sampler.stop()
