"""What torch.compile and worker processes need from the system."""

import multiprocessing
import os
import shutil
import sysconfig
from pathlib import Path

COMPILERS = ("g++", "c++", "clang++", "cl")


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
