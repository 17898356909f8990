"""Whether the panel is one to click, or a still page."""

import os
import sys
from typing import Any, Literal

from workbench.errors import SettingError
from workbench.machine.audience import current_shell, headless, kernel_of

Mode = Literal["auto", "live", "static"]
VARIABLE = "WORKBENCH_PANEL"


def chosen_mode(asked: str, *, shell: Any = None) -> Literal["live", "static"]:
    """``live`` where a person can click, ``static`` under papermill, nbconvert and in scripts.

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
    return "live" if _is_interactive(shell or current_shell()) else "static"


def _is_interactive(shell: Any) -> bool:
    if kernel_of(shell) is not None:
        return not headless(shell)
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())
