"""torch.compile for a run: whether it can act here, and the compiled twin of the model."""

import os
import shutil
import sysconfig
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
    return torch.compile(model)


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
