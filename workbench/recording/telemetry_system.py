"""What the machine does beside the steps, sampled twice a second on a thread of its own."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_devices import DeviceReader, reader_for

EVERY_S = 0.5


class TelemetrySampler:
    """Samples between :meth:`start` and :meth:`stop`.

    Args:
        telemetry: Where samples are written.
        waiting: Tells how many batches lie ready, ``None`` where nobody knows.
        workers: Tells how many worker processes the loader has.
        device: Tells the ``torch.device`` of the training, ``None`` before it is known.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        *,
        waiting: Callable[[], int | None],
        workers: Callable[[], int],
        device: Callable[[], Any],
    ) -> None:
        self.cost_ns = 0
        """CPU time that sampling took."""
        self._telemetry = telemetry
        self._waiting = waiting
        self._workers = workers
        self._device = device
        self._readers: dict[str, DeviceReader | None] = {}
        self._process: Any = None
        self._before: dict[str, tuple[int, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workbench-telemetry", daemon=True)

    def start(self) -> None:
        """Begin."""
        import psutil

        self._process = psutil.Process()
        psutil.cpu_percent(percpu=True)  # what it says next is since now
        self._thread.start()

    def stop(self) -> None:
        """End; doing it twice is fine."""
        self._ended.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(5)
        for reader in self._readers.values():
            if reader is not None:
                reader.close()
        self._readers.clear()

    def sample(self) -> None:
        """Write one sample."""
        began = time.thread_time_ns()
        row: dict[str, Any] = {"at_ns": time.monotonic_ns()}
        for question in (self._of_process, self._of_host, self._of_devices):
            # A system that tells less than others, or a process that ends just now.
            with suppress(OSError, RuntimeError, ValueError, AttributeError, ImportError):
                row.update(question())
        self._telemetry.sampled({name: v for name, v in row.items() if v is not None})
        self.cost_ns += time.thread_time_ns() - began

    def _of_process(self) -> dict[str, Any]:
        return {
            "rss_bytes": self._process.memory_info().rss,
            "workers": self._workers(),
            "queue_depth": self._waiting(),
        }

    def _of_host(self) -> dict[str, Any]:
        import psutil

        found: dict[str, Any] = {"cpu_percent": tuple(psutil.cpu_percent(percpu=True))}
        disk, network = psutil.disk_io_counters(), psutil.net_io_counters()
        if disk is not None:
            found["disk_read_bytes_s"] = self._rate("read", disk.read_bytes)
            found["disk_write_bytes_s"] = self._rate("write", disk.write_bytes)
        if network is not None:
            found["network_received_bytes_s"] = self._rate("received", network.bytes_recv)
            found["network_sent_bytes_s"] = self._rate("sent", network.bytes_sent)
        return found

    def _of_devices(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        device = self._device()
        if device is None or device.type == "cpu":
            return found
        import torch

        module = torch.get_device_module(device)
        if hasattr(module, "memory_allocated"):
            found["device_memory_bytes"] = module.memory_allocated(device)
        if device.type not in self._readers:
            self._readers[device.type] = reader_for(device)
        reader = self._readers[device.type]
        return found if reader is None else found | reader.read(device)

    def _rate(self, name: str, total: int) -> float | None:
        """Bytes per second since the last sample; ``None`` for the first one."""
        now = time.monotonic_ns()
        before = self._before.get(name)
        self._before[name] = (now, total)
        if before is None or now <= before[0]:
            return None
        return max(total - before[1], 0) / ((now - before[0]) / 1e9)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            self.sample()
