"""Runs in a process of its own: how fast a device multiplies, convolves and copies at most.

Started as ``python -P peak_trial.py DEVICE SECONDS THREADS FOLDER_OF_TORCH``; writes a JSON line
for each thing that it measured, and ends itself when its seconds are over. It imports nothing of
this package. A peak is the best of several tries: whatever else runs only makes it slower.
"""

import contextlib
import faulthandler
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

CPU_SIDES = (256, 512, 1024, 2048)
DEVICE_SIDES = (1024, 2048, 4096, 8192)
CPU_IMAGES = ((16, 64, 32), (8, 128, 28))
DEVICE_IMAGES = ((64, 128, 56), (128, 256, 28))
"""Pictures, channels and side of a 3 × 3 convolution."""
CPU_BYTES = (1 << 15, 1 << 18, 1 << 20, 1 << 23, 1 << 26, 1 << 28)
DEVICE_BYTES = (1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30)
"""Bytes that one copy reads and writes together."""
TRIES = 5
LEAST_S = 0.004
"""Own choice: calls are timed over so long a row of them."""
DTYPES = ("fp32", "tf32", "bf16", "fp16")
SLOW = 4.0
"""A type that takes so many times as long as fp32 at the smallest size is measured no further."""


def main(device: str, seconds: float, threads: int) -> None:
    """Measure everything for at most ``seconds`` once torch is there."""
    import torch

    torch.set_num_threads(threads)
    torch.ones(1, device=device).sum().item()
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - must stay open until the end
        faulthandler.dump_traceback_later(seconds * 2, exit=True, file=nowhere)
        over = time.perf_counter() + seconds
        say({"device": named(torch, device), "threads": threads})
        copies(torch, device, time.perf_counter() + 0.25 * seconds)
        transfers(torch, device)
        dtypes = [d for d in DTYPES if usable(torch, device, d)]
        slowest = 0.0
        for place, dtype in enumerate(dtypes):
            share = (over - time.perf_counter()) / (len(dtypes) - place)
            rate = peaks(torch, device, dtype, time.perf_counter() + share, slowest)
            slowest = rate / SLOW if dtype == "fp32" else slowest
        faulthandler.cancel_dump_traceback_later()
    say({"whole": True})


def say(what: dict[str, Any]) -> None:
    """One line to whoever started this process."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def named(torch: Any, device: str) -> str:
    """The device as its driver names it."""
    kind, _, index = device.partition(":")
    room = getattr(torch, kind, None)
    ask = getattr(room, "get_device_name", None)
    return str(ask(int(index or 0))) if ask is not None and kind != "cpu" else device


def usable(torch: Any, device: str, dtype: str) -> bool:
    """TF32 is a mode of NVIDIA's and AMD's matrix units, and nothing on others."""
    if dtype != "tf32":
        return True
    return device.startswith("cuda") and torch.cuda.get_device_capability(device)[0] >= 8


def best(torch: Any, device: str, call: Callable[[], Any], until: float) -> float:
    """Seconds of a call at best; at least two tries, more while there is time."""
    wait = waiting(torch, device)
    call()
    wait()
    begin = time.perf_counter()
    call()
    wait()
    once = max(time.perf_counter() - begin, 1e-7)
    count = max(1, min(2000, int(LEAST_S / once)))
    found = once
    for attempt in range(TRIES):
        if attempt > 1 and time.perf_counter() > until:
            break
        begin = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        found = min(found, (time.perf_counter() - begin) / count)
    return found


def waiting(torch: Any, device: str) -> Callable[[], None]:
    """What waits until the device has done everything."""
    room = getattr(torch, device.partition(":")[0], None)
    ask = getattr(room, "synchronize", None)
    return _at_once if device == "cpu" or ask is None else ask


def _at_once() -> None:
    """The CPU is done when it comes back."""


def peaks(torch: Any, device: str, dtype: str, until: float, least: float) -> float:
    """FLOPs a second of products and convolutions, larger ones while there is time.

    Returns:
        The rate at the smallest size; below ``least`` nothing more is tried.
    """
    first = 0.0
    of = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}[dtype]
    kind = getattr(torch, of)
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = dtype == "tf32"
    sides, images = (CPU_SIDES, CPU_IMAGES) if device == "cpu" else (DEVICE_SIDES, DEVICE_IMAGES)
    # A device without this operation in this type says so, and one without memory for the next size
    # too: what was measured before is the answer, and no line means not measured.
    with contextlib.suppress(RuntimeError, NotImplementedError):
        for side in sides:
            a, b = (torch.randn(side, side, device=device).to(kind) for _ in range(2))
            seconds = best(torch, device, partial(torch.matmul, a, b), until)
            rate = 2 * side**3 / seconds
            say({"matmul": dtype, "side": side, "flops_per_s": rate})
            first = first or rate
            if rate < least:
                return first
            if time.perf_counter() + 8 * 3 * seconds > until:
                break
    with contextlib.suppress(RuntimeError, NotImplementedError):  # as above
        for batch, channels, side in images:
            if time.perf_counter() > until:
                break
            x = torch.randn(batch, channels, side, side, device=device).to(kind)
            w = torch.randn(channels, channels, 3, 3, device=device).to(kind)
            x, w = (t.contiguous(memory_format=torch.channels_last) for t in (x, w))
            call = partial(torch.nn.functional.conv2d, x, w, padding=1)
            seconds = best(torch, device, call, until)
            rate = 2 * batch * side * side * channels * channels * 9 / seconds
            say({"convolution": dtype, "side": side, "flops_per_s": rate})
    return first


def copies(torch: Any, device: str, until: float) -> None:
    """Bytes a second within the memory of the device, by how many bytes take part."""
    for size in CPU_BYTES if device == "cpu" else DEVICE_BYTES:
        source = torch.ones(size // 8, device=device)
        target = torch.empty_like(source)
        ways = (
            partial(target.copy_, source),
            partial(torch.neg, source, out=target),
            partial(target.mul_, 1.0),
        )
        seconds = min(best(torch, device, call, until) for call in ways)
        say({"copy": size, "bytes_per_s": size / seconds})


def transfers(torch: Any, device: str) -> None:
    """Between the host's pinned memory and the device, each direction alone."""
    if not device.startswith("cuda"):
        return
    with contextlib.suppress(RuntimeError):  # where memory cannot be pinned it is not measured
        host = torch.ones(1 << 26, dtype=torch.uint8).pin_memory()
        there = host.to(device)
        for name, call in (
            ("host_to_device", lambda: there.copy_(host, non_blocking=True)),
            ("device_to_host", lambda: host.copy_(there, non_blocking=True)),
        ):
            seconds = best(torch, device, call, time.perf_counter() + 0.2)
            say({name: (1 << 26) / seconds})


if __name__ == "__main__":
    if len(sys.argv) > 4 and sys.argv[4]:
        sys.path.append(sys.argv[4])
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
