"""Whether a person sits in front of the notebook, or a program executes it."""

import os
import sys
from typing import Any


def current_shell() -> Any | None:
    """IPython's shell of this process; ``None`` outside of IPython."""
    asked = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if asked is None else asked()


def kernel_of(shell: Any | None) -> Any | None:
    """The kernel behind a shell; ``None`` in a terminal and in a script."""
    return getattr(shell, "kernel", None)


def headless(shell: Any | None = None) -> bool:
    """Whether a kernel runs a notebook without a person: papermill, nbconvert, the test of a book.

    Such a client says that nobody can answer ``input()``. Voilà says the same, and yet a person
    sits in front of it. Outside a kernel (a script, a terminal) nobody sees widgets either, but
    what is asked for there may be sent on: that is not headless.

    Args:
        shell: IPython's shell; found when left out.
    """
    kernel = kernel_of(shell or current_shell())
    if kernel is None or _voila():
        return False
    try:
        content = kernel.get_parent("shell")["content"]
    except (AttributeError, KeyError, TypeError):  # kernels that are not ipykernel's
        return False
    return content.get("allow_stdin") is False


def _voila() -> bool:
    software = os.environ.get("SERVER_SOFTWARE", "")
    return software.startswith("voila") or "VOILA_REQUEST_URL" in os.environ
