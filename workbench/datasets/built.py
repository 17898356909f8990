"""Small traces of a GPU for rooms without one; they come with the package."""

from importlib import resources
from pathlib import Path

from workbench.errors import DatasetError

SUFFIX = ".trace.json.gz"


def traces(name: str) -> Path:
    """The file of a trace that was built from durations of real kernels, not recorded.

    Args:
        name: One of those in ``datasets/traces``, such as ``"input_bound"``; its card there tells
            what it shows and how it was built.

    Raises:
        DatasetError: There is no trace of this name.
    """
    folder = Path(str(resources.files("workbench") / "_cards" / "traces"))
    known = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob("*" + SUFFIX))
    if name not in known:
        raise DatasetError(f"there is no trace {name!r}; there are: {', '.join(known)}.")
    return folder / (name + SUFFIX)
