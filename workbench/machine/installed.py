"""Versions of everything a measurement may depend on; no user, host or path is among them."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _installed
from typing import Any

from workbench.machine.nvidia import driver_version
from workbench.version import version

PACKAGES = (
    "torch",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "plotly",
    "torchvision",
    "lightning",
    "transformers",
    "triton",
    "jupyterlab",
    "ipywidgets",
    "anywidget",
    "papermill",
    "nbconvert",
    "pillow",
    "scikit-learn",
    "scikit-image",
)


def versions() -> dict[str, str | None]:
    """Name → version of Python, the packages, and what torch was built with; ``None`` if absent."""
    found: dict[str, str | None] = {
        "workbench": version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    found |= {name: package_version(name) for name in PACKAGES}
    return found | _torch_build()


def package_version(name: str) -> str | None:
    """Installed version of a distribution, without importing it; ``None`` if absent."""
    try:
        return _installed(name)
    except PackageNotFoundError:
        return None


def _torch_build() -> dict[str, str | None]:
    empty: dict[str, str | None] = dict.fromkeys(("cuda", "hip", "cudnn", "nvidia_driver"))
    try:
        import torch
    except ImportError:
        return empty
    backend: Any = torch.backends.cudnn
    cudnn = backend.version() if torch.version.cuda or torch.version.hip else None
    return {
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": None if cudnn is None else str(cudnn),
        "nvidia_driver": driver_version(),
    }
