"""Process-wide and thread-wide switches of torch and Python: read all, put back what changed."""

import gc
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

_DEVICES = ("cpu", "cuda", "xpu", "mps")

# A parent stands before its children: a child that was never set reads as its parent does.
_FP32_PRECISION = (
    ("generic", "all"),
    ("cuda", "all"),
    ("cuda", "matmul"),
    ("cuda", "conv"),
    ("cuda", "rnn"),
    ("mkldnn", "all"),
    ("mkldnn", "matmul"),
    ("mkldnn", "conv"),
    ("mkldnn", "rnn"),
)
_HAS_FP32_PRECISION = hasattr(torch._C, "_get_fp32_precision_getter")


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One switch: how to read it and how to set it."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class SavedFlags:
    """The switches as they were."""

    values: tuple[tuple[Flag, Any], ...]
    fp32: tuple[str, ...]
    environment: dict[str, str]

    def restore(self) -> None:
        """Set back every switch that differs now; the others are not touched."""
        for flag, value in self.values:
            if flag.get() != value:
                flag.set(value)
        if _fp32_values() != self.fp32:
            _set_fp32(self.fp32)
        for name in set(os.environ) - set(self.environment):
            del os.environ[name]
        for name, text in self.environment.items():
            if os.environ.get(name) != text:
                os.environ[name] = text


def save_flags() -> SavedFlags:
    """Read every switch; one that cannot be read on this build is left alone."""
    values = []
    for flag in _flags():
        try:
            values.append((flag, flag.get()))
        # Reading a legacy TF32 switch raises when old and new interfaces were mixed.
        except (RuntimeError, AttributeError):
            continue
    return SavedFlags(values=tuple(values), fp32=_fp32_values(), environment=dict(os.environ))


def _flags() -> Iterator[Flag]:
    yield Flag(name="grad mode", get=torch.is_grad_enabled, set=torch.set_grad_enabled)
    yield Flag(name="default dtype", get=torch.get_default_dtype, set=torch.set_default_dtype)
    yield Flag(
        name="default device",
        get=lambda: torch.utils._device.CURRENT_DEVICE,
        set=torch.set_default_device,
    )
    yield Flag(name="numpy errors", get=np.geterr, set=lambda value: np.seterr(**value))
    yield Flag(
        name="float32 matmul precision",
        get=torch.get_float32_matmul_precision,
        set=torch.set_float32_matmul_precision,
    )
    yield from _fp32_flags()
    yield Flag(name="threads", get=torch.get_num_threads, set=torch.set_num_threads)
    yield Flag(
        name="anomaly mode",
        get=lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        set=lambda value: torch.set_anomaly_enabled(*value),
    )
    yield Flag(
        name="deterministic algorithms",
        get=lambda: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        set=lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    )
    yield _attribute(torch.utils.deterministic, "fill_uninitialized_memory")
    for name in ("enabled", "benchmark", "deterministic", "benchmark_limit"):
        yield _attribute(torch.backends.cudnn, name)
    yield Flag(
        name="mkldnn enabled",
        get=torch._C._get_mkldnn_enabled,
        set=torch._C._set_mkldnn_enabled,
    )
    yield from _attention_flags()
    yield from _autocast_flags()
    yield Flag(name="garbage collector", get=gc.isenabled, set=_collect)
    yield Flag(
        name="collector thresholds",
        get=gc.get_threshold,
        set=lambda value: gc.set_threshold(*value),
    )


def _fp32_flags() -> Iterator[Flag]:
    if not _HAS_FP32_PRECISION:
        yield _attribute(torch.backends.cudnn, "allow_tf32")
        yield _attribute(torch.backends.cuda.matmul, "allow_tf32")
    for name in (
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ):
        yield _attribute(torch.backends.cuda.matmul, name)


def _fp32_values() -> tuple[str, ...]:
    """What was set at each place; a parent says ``none`` while its children are read.

    Otherwise a child that was never set could not be told from one that was set to the same.
    """
    if not _HAS_FP32_PRECISION:
        return ()
    found: list[str] = []
    try:
        for place in _FP32_PRECISION:
            found.append(torch._C._get_fp32_precision_getter(*place))
            if place[1] == "all":
                torch._C._set_fp32_precision_setter(*place, "none")
    finally:
        for place, value in zip(_FP32_PRECISION, found, strict=False):
            if place[1] == "all":
                torch._C._set_fp32_precision_setter(*place, value)
    return tuple(found)


def _set_fp32(values: tuple[str, ...]) -> None:
    for place, value in zip(_FP32_PRECISION, values, strict=True):
        torch._C._set_fp32_precision_setter(*place, value)


def _attention_flags() -> Iterator[Flag]:
    backends = torch.backends.cuda
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        get = getattr(backends, f"{name}_sdp_enabled", None)
        change = getattr(backends, f"enable_{name}_sdp", None)
        if get is not None and change is not None:
            yield Flag(name=f"{name} attention", get=get, set=change)


def _autocast_flags() -> Iterator[Flag]:
    for device in _DEVICES:
        yield Flag(
            name=f"autocast on {device}",
            get=partial(torch.is_autocast_enabled, device),
            set=partial(torch.set_autocast_enabled, device),
        )
        yield Flag(
            name=f"autocast dtype on {device}",
            get=partial(torch.get_autocast_dtype, device),
            set=partial(torch.set_autocast_dtype, device),
        )
    yield Flag(
        name="autocast cache",
        get=torch.is_autocast_cache_enabled,
        set=torch.set_autocast_cache_enabled,
    )


def _attribute(owner: Any, name: str) -> Flag:
    return Flag(
        name=name,
        get=partial(getattr, owner, name),
        set=partial(setattr, owner, name),
    )


def _collect(enabled: bool) -> None:
    if enabled:
        gc.enable()
    else:
        gc.disable()
