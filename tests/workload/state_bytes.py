"""Everything that can be reached from some objects, as bytes: written without the product's code.

Two equal results mean: same objects in the same places, same numbers in the same storages, same
gradients, generators, attributes, closures. Tensors count with address, strides, dtype and device.
"""

import functools
import gc
import os
import random
import threading
import types
from collections import deque
from contextlib import suppress
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import torch

_ATOMS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)
_OPAQUE = (types.ModuleType, type, types.BuiltinFunctionType, threading.Thread, types.GeneratorType)


def state_bytes(*roots: object) -> bytes:
    """What can be reached from ``roots``, in a fixed order."""
    lines: list[bytes] = []
    _write(roots, "root", lines, {})
    return b"\n".join(lines)


def process_bytes() -> bytes:
    """Random states, flags, threads, environment, child processes and threads of this process."""
    precisions = [
        torch._C._get_fp32_precision_getter(backend, operator)
        for backend in ("generic", "cuda", "mkldnn")
        for operator in (("all",) if backend == "generic" else ("all", "matmul", "conv", "rnn"))
    ]
    kernels = ("flash", "mem_efficient", "math", "cudnn")
    values = {
        "python": random.getstate(),
        "numpy": repr(np.random.get_state()),
        "torch": torch.get_rng_state().numpy().tobytes(),
        "grad": torch.is_grad_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "autocast cache": torch.is_autocast_cache_enabled(),
        "dtype": torch.get_default_dtype(),
        "matmul": torch.get_float32_matmul_precision(),
        "fp32": precisions,
        "attention": [getattr(torch.backends.cuda, f"{name}_sdp_enabled")() for name in kernels],
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "affinity": _affinities(),
        "collector": gc.isenabled(),
        "environment": sorted(os.environ.items()),
        "children": sorted(child.pid or 0 for child in active_children()),
        # tqdm, which the compiler uses, starts one thread for the life of the process.
        "running": sorted(
            (t.name, t.ident) for t in threading.enumerate() if t.name != "tqdm_monitor"
        ),
    }
    return repr(values).encode()


def _affinities() -> list[str]:
    """What the threads of this process may run on; some may be ending just now."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            found.add(str(os.sched_getaffinity(int(task.name))))
    return sorted(found)


def difference(before: bytes, after: bytes) -> str:
    """Where the two first differ, for the message of a failing test."""
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    if at is None:
        return f"{len(before)} bytes -> {len(after)} bytes"
    low = max(0, at - 200)
    return f"{before[low : at + 100]!r}\n-> {after[low : at + 100]!r}"


def _write(value: object, path: str, lines: list[bytes], seen: dict[int, object]) -> None:
    if isinstance(value, _ATOMS):
        lines.append(f"{path} = {value!r}".encode())
        return
    # Tuples and bound methods are made anew by reading them; what they hold is what counts.
    lasting = not isinstance(value, tuple | types.MethodType | types.BuiltinMethodType)
    who = f"@{id(value)}" if lasting else ""
    lines.append(f"{path} : {type(value).__qualname__} {who}".encode())
    if id(value) in seen or isinstance(value, _OPAQUE):
        return
    seen[id(value)] = value
    for name, child in _parts(value, path, lines):
        _write(child, f"{path}{name}", lines, seen)


def _parts(value: Any, path: str, lines: list[bytes]) -> list[tuple[str, object]]:
    if isinstance(value, torch.Tensor):
        return _tensor(value, path, lines)
    if isinstance(value, np.ndarray):
        lines.append(f"{path} = {value.tobytes()!r}".encode())
        return []
    if isinstance(value, torch.Generator):
        return [(".state", value.get_state().numpy().tobytes())]
    if isinstance(value, random.Random):
        return [(".state", repr(value.getstate()))]
    if isinstance(value, np.random.Generator):
        return [(".state", repr(value.bit_generator.state))]
    if isinstance(value, types.FunctionType):
        return _function(value)
    if isinstance(value, types.MethodType):
        return [(".__self__", value.__self__), (".__func__", value.__func__)]
    if isinstance(value, functools.partial):
        return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
    return _members(value) + _attributes(value)


def _members(value: Any) -> list[tuple[str, object]]:
    parts: list[tuple[str, object]] = []
    if isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            parts += [(f"[{number}].key", key), (f"[{key!s:.40}]", item)]
    elif isinstance(value, list | tuple | deque):
        parts += [(f"[{number}]", item) for number, item in enumerate(value)]
    elif isinstance(value, set | frozenset):
        parts.append((".members", repr(sorted(map(repr, value)))))
    return parts


def _attributes(value: Any) -> list[tuple[str, object]]:
    parts = [(f".{name}", item) for name, item in getattr(value, "__dict__", {}).items()]
    for kind in type(value).__mro__:
        for name in kind.__dict__.get("__slots__", ()):
            if name not in {"__dict__", "__weakref__"} and hasattr(value, name):
                parts.append((f".{name}", getattr(value, name)))
    return parts


def _tensor(value: torch.Tensor, path: str, lines: list[bytes]) -> list[tuple[str, object]]:
    place = (value.shape, value.stride(), value.dtype, value.device, value.data_ptr())
    lines.append(f"{path} = {place} grad={value.requires_grad}".encode())
    raw = torch.empty(0, dtype=torch.uint8).set_(value.detach().untyped_storage())
    lines.append(path.encode() + b" = " + raw.numpy().tobytes().hex().encode())
    parts: list[tuple[str, object]] = [("._backward_hooks", value._backward_hooks)]
    parts.append(("._accumulate_hooks", value._post_accumulate_grad_hooks))
    if value.is_leaf:
        parts.append((".grad", value.grad))
    return parts + [(f".{name}", item) for name, item in value.__dict__.items()]


def _function(value: types.FunctionType) -> list[tuple[str, object]]:
    parts: list[tuple[str, object]] = [(".__defaults__", value.__defaults__)]
    parts += [(f".{name}", item) for name, item in value.__dict__.items()]
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        parts.append((f".<{name}>", cell.cell_contents))
    if not value.__module__.startswith("torch"):
        for name in value.__code__.co_names:
            if name in value.__globals__:
                parts.append((f".{name}", value.__globals__[name]))
    return parts
