"""What torch.compile and worker processes need from the system."""

import multiprocessing
import os
import shutil
import sysconfig
from importlib.util import find_spec
from pathlib import Path

COMPILERS = ("g++", "c++", "clang++", "cl")
C_COMPILERS = ("gcc", "clang", "cc")


def cpp_compiler() -> str | None:
    """Name of the C++ compiler that torch.compile would find, or ``None``."""
    chosen = os.environ.get("CXX")
    for name in (chosen, *COMPILERS) if chosen else COMPILERS:
        if shutil.which(name):
            return Path(name).name
    return None


def python_headers() -> bool:
    """Whether Python.h is there, which compiled code for the CPU includes."""
    return (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file()


def start_method() -> str:
    """How this process starts workers; asking does not fix the method, as torch's way would."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]


def compile_lacks(device_type: str) -> str | None:
    """What torch.compile would miss for code on a device; ``None`` if everything is there."""
    if device_type == "cpu":
        if cpp_compiler() is None:
            return "a C++ compiler (none is on PATH: install g++ or clang++)"
        return None if python_headers() else "Python's headers (install python3-dev)"
    if device_type in ("cuda", "hip", "xpu"):
        if find_spec("triton") is None:
            return "Triton, which torch brings on Linux (pip install triton)"
        if not any(shutil.which(name) for name in (os.environ.get("CC"), *C_COMPILERS) if name):
            return "a C compiler, with which Triton builds its launchers (install gcc)"
        return None if python_headers() else "Python's headers (install python3-dev)"
    return None
