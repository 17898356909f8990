"""Samples of the training process, its workers, the host and devices, a few times a second."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from workbench.machine.nvidia import NvidiaSample, NvidiaSampler
from workbench.recording.loader.processes import accounts_delays, host_row, process_row

EVERY_S = 0.25
SETTLE_S = 0.03
"""Between being woken and sampling; samples are at least so far apart."""
SAMPLES_MOST = 40_000
"""Rows that are kept; a long run is sampled less and less often."""


class SystemSampler:
    """Samples on a thread of its own between :meth:`start` and :meth:`stop`.

    Args:
        workers: Gives stream, number and process of every worker that was started.
    """

    def __init__(self, workers: Callable[[], Iterable[tuple[int, int, int]]]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.cost_ns = 0
        """CPU time that sampling took."""
        self._workers = workers
        self._ended = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workbench-system", daemon=True)
        self._delays = accounts_delays()
        self._devices = NvidiaSampler()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Sample now, and from now on."""
        self._devices.open()
        self.sample()
        self._thread.start()

    def stop(self) -> None:
        """Sample once more and end; doing it twice is fine."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(5)
        self.sample()
        self._devices.close()

    def wake(self) -> None:
        """Sample soon: workers were started, and they may not live until the next sample."""
        self._woken.set()

    def sample(self) -> None:
        """One row for each process and device, and one for the host."""
        cpu, now = time.thread_time_ns(), time.monotonic_ns()
        rows: list[dict[str, Any]] = []
        with suppress(ValueError, IndexError, AttributeError):  # a kernel that tells it otherwise
            rows = self._rows(now)
        with self._lock:
            self.rows += rows
        self.cost_ns += time.thread_time_ns() - cpu

    def _rows(self, now: int) -> list[dict[str, Any]]:
        rows = [host_row() | {"process": "host", "at_ns": now}]
        if (own := process_row(os.getpid(), delays=self._delays)) is not None:
            rows.append(own | {"process": "training", "at_ns": now})
        for stream, number, pid in list(self._workers()):
            row = process_row(pid, delays=self._delays)
            if row is not None:
                about = {"process": "worker", "stream": stream, "worker": number, "at_ns": now}
                rows.append(row | about)
        return rows + [device_row(found) | {"at_ns": now} for found in self._devices.read()]

    def _run(self) -> None:
        pause = EVERY_S
        while not self._ended.is_set():
            self._woken.wait(pause)
            self._woken.clear()
            if self._ended.wait(SETTLE_S):
                return
            self.sample()
            if len(self.rows) > SAMPLES_MOST:
                kept = set(sorted({row["at_ns"] for row in self.rows})[::2])
                self.rows = [row for row in self.rows if row["at_ns"] in kept]
                pause *= 2


def device_row(found: NvidiaSample) -> dict[str, Any]:
    """What a driver says of a device, under the names of the table's columns."""
    said = asdict(found)
    return {"process": "device", "device": said.pop("device")} | {
        f"gpu_{name}": value for name, value in said.items()
    }
