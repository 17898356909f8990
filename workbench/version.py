"""The installed version of the distribution."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _installed


def version() -> str:
    """Version of ``torch-workbench``, or ``unknown`` when it runs from a bare folder."""
    try:
        return _installed("torch-workbench")
    except PackageNotFoundError:
        return "unknown"
