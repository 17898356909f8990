"""Writes what a profiler saw, in the words of an era or of a vendor."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.machine import Machine, Record

CUDA = {
    "launch": "cudaLaunchKernel",
    "copy": "cudaMemcpyAsync",
    "stream_sync": "cudaStreamSynchronize",
    "device_sync": "cudaDeviceSynchronize",
    "malloc": "cudaMalloc",
    "free": "cudaFree",
    "module_load": "cuModuleLoadData",
    "begin_capture": "cudaStreamBeginCapture",
    "end_capture": "cudaStreamEndCapture",
    "instantiate": "cudaGraphInstantiate",
    "graph_launch": "cudaGraphLaunch",
    "wait_event": "cudaStreamWaitEvent",
    "event_sync": "cudaEventSynchronize",
    "query": "cudaEventQuery",
    "host_alloc": "cudaHostAlloc",
}
HIP = {key: name.replace("cuda", "hip").replace("cu", "hip") for key, name in CUDA.items()}
HIP |= {"copy": "hipMemcpyWithStream", "launch": "hipExtModuleLaunchKernel"}
PINNED_HIP = "hipMemcpyAsync"


@dataclass(frozen=True, kw_only=True)
class Era:
    """How a version of torch writes its traces."""

    name: str
    calls: dict[str, str]
    categories: dict[str, str]
    tick: int = 1
    """Resolution of its times in ns."""
    base: bool = True
    """Times count from a base that the header tells."""
    stacks: bool = True
    """It can write Python frames."""
    old: bool = False
    drop: frozenset[str] = field(default_factory=frozenset)


_NEW = {
    "operator": "cpu_op",
    "range": "user_annotation",
    "runtime": "cuda_runtime",
    "python": "python_function",
    "overhead": "overhead",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
}
_OLD = {
    "operator": "Operator",
    "range": "Operator",
    "runtime": "Runtime",
    "kernel": "Kernel",
    "memcpy": "Memcpy",
}

ERAS = (
    Era(name="torch 2.13", calls=CUDA, categories=_NEW),
    Era(name="torch 2.0", calls=CUDA, categories=_NEW, tick=1_000, base=False),
    Era(name="torch 1.8", calls=CUDA, categories=_OLD, tick=1_000, base=False, stacks=False,
        old=True),
    Era(name="ROCm", calls=HIP, categories=_NEW),
)  # fmt: skip

UNIX = 1_700_000_000_000_000_000


@dataclass(frozen=True, kw_only=True)
class Flaws:
    """What is wrong with the recording itself."""

    behind: int = 0
    """Nanoseconds by which the device's clock is behind the host's."""
    lost: frozenset[int] = frozenset()
    """Correlations of launching calls whose record is missing."""


def document(machine: Machine, era: Era, flaws: Flaws) -> bytes:
    """The trace as JSON."""
    writer = _Writer(machine, era, flaws)
    header: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A"}]}
    if era.base:
        header["baseTimeNanoseconds"] = UNIX
    return json.dumps({**header, "traceEvents": writer.events()}).encode()


class _Writer:
    def __init__(self, machine: Machine, era: Era, flaws: Flaws) -> None:
        self.machine, self.era, self.flaws = machine, era, flaws
        self.blocking = {
            w.call for w in machine.device.works if "Pageable" in w.name
        }  # fmt: skip

    def events(self) -> list[dict[str, Any]]:
        shown = [r for r in self.machine.records if self._shown(r)]
        return [self._host(record, i) for i, record in enumerate(shown)] + [
            self._event(
                work.name, self.era.categories[work.kind], work.start - self.flaws.behind,
                work.end - work.start, work.device, work.stream,
                {"device": work.device, "stream": work.stream, "correlation": work.call},
            )
            for work in self.machine.device.works
            if work.visible
        ]  # fmt: skip

    def _shown(self, record: Record) -> bool:
        return (
            record.kind in self.era.categories
            and record.name != "hidden"
            and record.args.get("correlation") not in self.flaws.lost
        )

    def _host(self, record: Record, number: int) -> dict[str, Any]:
        name, args = record.name, {}
        if record.kind == "runtime":
            name = self.era.calls[name]
            args["correlation"] = record.args["correlation"]
            if self.era.name == "ROCm" and record.name == "copy":
                name = name if args["correlation"] in self.blocking else PINNED_HIP
        if "sequence" in record.args:
            args["Sequence number"] = record.args["sequence"]
        if record.kind == "python":
            args["Python id"] = number
        pid, tid = (-1, 0) if record.kind == "overhead" else (100, record.thread)
        category = self.era.categories[record.kind]
        return self._event(name, category, record.start, record.end - record.start, pid, tid, args)

    def _event(  # noqa: PLR0917
        self, name: str, cat: str, start: int, ns: int, pid: int, tid: int, args: dict[str, Any]
    ) -> dict[str, Any]:
        begins = start if self.era.base else start + UNIX
        return {
            "ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
            "ts": self._us(begins), "dur": self._us(ns), "args": args,
        }  # fmt: skip

    def _us(self, ns: int) -> float:
        return ns // 1_000 if self.era.tick == 1_000 else ns / 1_000
