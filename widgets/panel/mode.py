"""Whether somebody sits in front of the notebook."""

import os
import sys
from typing import Any, Literal

from workbench.errors import SettingError

Mode = Literal["auto", "live", "static"]
VARIABLE = "WORKBENCH_PANEL"


def chosen_mode(asked: str, *, shell: Any = None) -> Literal["live", "static"]:
    """``live`` where a person can click, ``static`` under papermill, nbconvert and in scripts.

    A cell that may not ask for input is executed by a program. Voilà's cells may not either, and
    yet a person sits in front of them.

    Args:
        asked: What the caller wants; ``auto`` looks at ``WORKBENCH_PANEL``, then around.
        shell: IPython's shell; found when left out.

    Raises:
        SettingError: ``asked`` or the variable is unknown.
    """
    wanted = asked if asked != "auto" else os.environ.get(VARIABLE, "auto")
    if wanted not in ("auto", "live", "static"):
        where = "mode" if asked != "auto" else f"the variable {VARIABLE}"
        raise SettingError(f"{where}={wanted!r} is unknown: use auto, live or static.")
    if wanted != "auto":
        return "live" if wanted == "live" else "static"
    return "live" if _is_interactive(shell or _shell()) else "static"


def _shell() -> Any:
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    return get_ipython()


def _is_interactive(shell: Any) -> bool:
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        marimo = sys.modules.get("marimo")
        return marimo is not None and bool(marimo.running_in_notebook())
    if os.environ.get("VOILA_REQUEST_URL") or "voila" in os.environ.get("SERVER_SOFTWARE", ""):
        return True
    try:
        parent = kernel.get_parent("shell")
    except (TypeError, AttributeError):  # kernels that are not ipykernel's
        return True
    return bool(parent.get("content", {}).get("allow_stdin", True))
