"""Why workers that start in a fresh interpreter cannot, in words that help."""

import pickle
from typing import Any

from torch.utils.data import DataLoader

from workbench.workload.loader import interactive_part, start_method


def starts_by_pickling(loader: Any) -> bool:
    """Whether the parts of this loader must travel to its workers as bytes."""
    known = isinstance(loader, DataLoader) and loader.num_workers > 0
    return known and start_method(loader) != "fork"


def explain_interactive(loader: DataLoader[Any]) -> str | None:
    """What to do about a part that fresh workers could not import; ``None`` without one."""
    name = interactive_part(loader)
    if name is None:
        return None
    return (
        f"{name} is defined in the notebook or console, where workers started by "
        f"{start_method(loader)} cannot import it: move it into a module, use "
        "multiprocessing_context='fork', or workers=0."
    )


def explain_pickling(error: BaseException, loader: Any) -> str | None:
    """What to do about a part that cannot be pickled; ``None`` for any other error."""
    if not isinstance(error, TypeError | AttributeError | pickle.PicklingError):
        return None
    if not starts_by_pickling(loader):
        return None
    if "pickle" not in str(error).lower() and "local object" not in str(error):
        return None
    return (
        f"the loader cannot start its workers by {start_method(loader)}, because a part of it "
        f"cannot be pickled ({error}): define data set and functions at the top of a module, open "
        "files and connections where they are first used in a worker, use "
        "multiprocessing_context='fork', or workers=0."
    )
