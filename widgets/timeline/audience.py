"""Whether anybody can act on a widget of this process."""

import os
import sys


def headless() -> bool:
    """Whether a notebook runs without a person before it: papermill, nbconvert, the test of a book.

    Such a client says that nobody can answer ``input()``. Voilà says the same, but shows widgets.
    Outside a kernel (a script, a terminal) nobody sees widgets either, yet what is asked for there
    may be sent on: it counts as a person.
    """
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None or _voila():
        return False
    try:
        content = kernel.get_parent("shell")["content"]
    except (AttributeError, KeyError, TypeError):
        return False
    return content.get("allow_stdin") is False


def _voila() -> bool:
    software = os.environ.get("SERVER_SOFTWARE", "")
    return software.startswith("voila") or "VOILA_REQUEST_URL" in os.environ
