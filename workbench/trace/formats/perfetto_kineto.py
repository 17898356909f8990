"""What a Perfetto trace holds becomes the events that Kineto's JSON would hold.

Categories that the format leaves out are told from names and arguments; work of a GPU has the
argument names of Kineto again.
"""

import json
import re
from typing import Any

from msgspec import Raw

from workbench.trace.formats.perfetto_lanes import Lanes
from workbench.trace.formats.perfetto_messages import Event, Stage
from workbench.trace.schema import EXACT

_CALL = re.compile(r"(?:cuda|hip)[A-Z]\w*$")
_DRIVER = re.compile(r"cu[A-Z]\w*$")
_STREAM = re.compile(r"stream (-?\d+)$")
_STAGES = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Annotation": "gpu_user_annotation",
}
_KINETO_KEYS = {
    "device id": "device",
    "stream id": "stream",
    "registers_per_thread": "registers per thread",
}
_OF_OPERATORS = frozenset(("Sequence number", "Input Dims", "Input type", "Fwd thread id"))


def host_slice(at: int, length: int, track: int, event: Event, lanes: Lanes) -> Any:
    """A slice of a thread."""
    pid, tid = lanes.of(track)
    return EXACT.structs["X"](
        cat=event.category or _category(event, lanes.process(track)),
        name=event.name,
        pid=pid,
        tid=tid,
        ts=_us(at),
        dur=_us(length),
        args=_raw(event.args),
    )


def device_work(at: int, stage: Stage, lanes: Lanes) -> Any:
    """Work on a queue of a GPU, which is a stream of CUDA."""
    match = _STREAM.match(stage.queue)
    tid: Any = int(match[1]) if match else stage.queue or "queue"
    lanes.name_gpu(stage.gpu, tid)
    args = {_KINETO_KEYS.get(key, key): value for key, value in stage.args.items()}
    if stage.event_id:
        args.setdefault("correlation", stage.event_id)
    return EXACT.structs["X"](
        cat=_STAGES.get(stage.stage, "kernel"),
        name=stage.name,
        pid=stage.gpu,
        tid=tid,
        ts=_us(at),
        dur=_us(stage.duration),
        args=_raw(args | {"device": stage.gpu, "stream": tid}),
    )


def instant(at: int, track: int, event: Event, lanes: Lanes) -> Any:
    """A moment of a thread."""
    pid, tid = lanes.of(track)
    return EXACT.structs["i"](cat=event.category, name=event.name, pid=pid, tid=tid, ts=_us(at))


def counter(at: int, track: int, event: Event, lanes: Lanes) -> Any:
    """A value of a counter, which is called as its track."""
    pid, tid = lanes.of(track)
    args = {"value": event.value}
    name = event.name or lanes.name(track)
    return EXACT.structs["C"](
        cat=event.category, name=name, pid=pid, tid=tid, ts=_us(at), args=args
    )


def _category(event: Event, process: str) -> str:
    """Kineto's category of a host record, by what it holds; the first sign counts."""
    args, name = event.args, event.name
    signs = (
        ("cuda_sync_kind" in args, "cuda_sync"),
        ("Python id" in args, "python_function"),
        (process == "Overhead", "overhead"),
        (_CALL.match(name), "cuda_runtime"),
        (_DRIVER.match(name) or "cbid" in args, "cuda_driver"),
        ("::" in name or _OF_OPERATORS & args.keys(), "cpu_op"),
    )
    return next((category for sign, category in signs if sign), "user_annotation")


def _us(ns: int) -> str:
    """Nanoseconds as the microseconds of JSON, exactly."""
    whole, part = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{part:03d}"


def _raw(args: dict[str, Any]) -> Raw:
    return Raw(json.dumps(args).encode())
