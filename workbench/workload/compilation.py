"""torch.compile for a run: whether it can act here, and the compiled twin of the model."""

import importlib
import os
import shutil
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.errors import SettingError


def is_compiled(model: Any) -> bool:
    """Whether the model, or a part of it, runs through ``torch.compile`` already."""
    if not isinstance(model, nn.Module):
        return False
    return any(
        getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod")
        for module in model.modules()
    )


def compiled(model: Any, device: torch.device) -> Any:
    """The compiled twin; the model itself is not changed.

    Raises:
        SettingError: When the model is compiled already, or the tool chain is not there.
    """
    if is_compiled(model):
        raise SettingError(
            "compile=True cannot act: the model (or a part of it) is compiled already. "
            "Use compile=False to see what compilation gains."
        )
    missing = _missing_tool(device)
    if missing is not None:
        raise SettingError(f"compile=True cannot act: {missing}.")
    with warnings.catch_warnings():
        # Importing the compiler warns of torch's own deprecated calls; as errors they would end it.
        warnings.simplefilter("ignore")
        importlib.import_module("torch._inductor.compile_fx")
    try:
        return torch.compile(model)
    except RuntimeError as error:
        raise SettingError(f"compile=True cannot act on this model: {error}") from error


@contextmanager
def without_new_compile_workers() -> Iterator[None]:
    """End the compiler's worker processes and threads after the block, unless already there."""
    keep_processes, keep_threads = _compile_workers()
    try:
        yield
    finally:
        processes, threads = _compile_workers()
        compiler = sys.modules.get(_COMPILER)
        if compiler is not None and processes and not keep_processes:
            compiler.shutdown_compile_workers()
        if compiler is not None and threads and not keep_threads:
            pool = compiler.AsyncCompile.pool
            pool().shutdown()
            pool.cache_clear()  # the next compilation makes a new one


_COMPILER = "torch._inductor.async_compile"


def _compile_workers() -> tuple[bool, bool]:
    """Whether the compiler holds a pool of processes, and one of threads."""
    compiler = sys.modules.get(_COMPILER)
    if compiler is None:
        return False, False
    pool = getattr(getattr(compiler, "AsyncCompile", None), "pool", None)
    made = getattr(pool, "cache_info", None)
    return len(getattr(compiler, "_pool_set", ())) > 0, made is not None and made().currsize > 0


def _missing_tool(device: torch.device) -> str | None:
    if device.type == "cuda":
        from torch.utils._triton import has_triton

        return None if has_triton() else "torch.compile needs Triton for this device"
    compiler = os.environ.get("CXX", "").split(" ")[0]
    if not any(shutil.which(name) for name in (compiler, "g++", "clang++", "c++", "cl") if name):
        return "torch.compile needs a C++ compiler, and none is on PATH (install g++ or clang++)"
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if not headers.exists():
        return "torch.compile needs Python's headers (install python3-dev)"
    return None
