"""Writes small Kineto traces by hand, so that a test reads as trace, question, answer.

Times are microseconds, as in the format. Every method returns the builder's own event, so that a
test may alter it. ``Kineto().document()`` is the JSON object, ``.write(path)`` the file.
"""

import gzip
import json
from pathlib import Path
from typing import Any

HOST = 100
DEVICE_PID = 0


class Kineto:
    """A trace in the layout of torch 2.4 and later."""

    def __init__(self, *, base_ns: int = 1_700_000_000_000_000_000, gpu: bool = False) -> None:
        self.events: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [_A100] if gpu else [],
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": base_ns,
        }

    def event(self, name: str, cat: str, ts: float, dur: float, **rest: Any) -> dict[str, Any]:
        """Any duration event; ``pid``, ``tid`` and ``args`` may be given."""
        made = {"ph": "X", "cat": cat, "name": name, "pid": HOST, "tid": HOST, "ts": ts, "dur": dur}
        made["args"] = {}
        made.update(rest)
        self.events.append(made)
        return made

    def step(self, number: int, ts: float, dur: float, *, tid: int = HOST) -> dict[str, Any]:
        """``ProfilerStep#N`` on the host."""
        return self.event(f"ProfilerStep#{number}", "user_annotation", ts, dur, tid=tid)

    def op(
        self, name: str, ts: float, dur: float, *, tid: int = HOST, **args: Any
    ) -> dict[str, Any]:
        """A framework operator (``cpu_op``)."""
        return self.event(name, "cpu_op", ts, dur, tid=tid, args=args)

    def range(self, name: str, ts: float, dur: float, *, tid: int = HOST) -> dict[str, Any]:
        """A ``record_function`` range of the user or of torch."""
        return self.event(name, "user_annotation", ts, dur, tid=tid)

    def loader(self, ts: float, dur: float, *, tid: int = HOST) -> dict[str, Any]:
        """One wait in the data loader's ``__next__``."""
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        return self.range(name, ts, dur, tid=tid)

    def python(
        self, name: str, ts: float, dur: float, *, ident: int, parent: int | None, tid: int = HOST
    ) -> dict[str, Any]:
        """A Python stack record."""
        args = {"Python id": ident, "Python parent id": parent}
        return self.event(name, "python_function", ts, dur, tid=tid, args=args)

    def runtime(
        self, name: str, ts: float, dur: float, *, correlation: int, tid: int = HOST, **args: Any
    ) -> dict[str, Any]:
        """A CUDA runtime call, such as ``cudaLaunchKernel``."""
        args["correlation"] = correlation
        return self.event(name, "cuda_runtime", ts, dur, tid=tid, args=args)

    def kernel(
        self,
        name: str,
        ts: float,
        dur: float,
        *,
        correlation: int | None = None,
        stream: int = 7,
        device: int = 0,
        cat: str = "kernel",
        **args: Any,
    ) -> dict[str, Any]:
        """A kernel; ``cat`` may also be gpu_memcpy or gpu_memset."""
        args |= {"device": device, "stream": stream}
        if correlation is not None:
            args["correlation"] = correlation
        return self.event(name, cat, ts, dur, pid=device, tid=stream, args=args)

    def launched(
        self,
        name: str,
        *,
        call: tuple[float, float],
        kernel: tuple[float, float],
        correlation: int,
        stream: int = 7,
        device: int = 0,
        tid: int = HOST,
    ) -> None:
        """A kernel with its launch call; both as (start, duration)."""
        self.runtime("cudaLaunchKernel", *call, correlation=correlation, tid=tid)
        self.kernel(name, *kernel, correlation=correlation, stream=stream, device=device)

    def document(self) -> dict[str, Any]:
        """The whole JSON object."""
        return {**self.header, "traceEvents": self.events}

    def write(self, path: Path) -> Path:
        """Write the trace; a name that ends in .gz is compressed."""
        data = json.dumps(self.document()).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


_A100 = {
    "id": 0,
    "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42298834944,
    "computeMajor": 8,
    "computeMinor": 0,
    "numSms": 108,
}
