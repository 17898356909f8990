"""Collect the warnings that the user's code raises, and still show them."""

import warnings
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

MOST = 50
LONGEST = 500


class WarningLog:
    """Distinct warnings shown while it is on, as ``Category: text``.

    The filters stay the user's: what they hide is not collected, what they turn into an error is
    raised as always.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._shown: Any = None

    def start(self) -> None:
        """Listen."""
        self._shown = warnings.showwarning
        warnings.showwarning = self._show

    def stop(self) -> None:
        """Stop listening; a listener that somebody put on top of ours stays."""
        if warnings.showwarning == self._show:
            warnings.showwarning = self._shown

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _show(self, message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        text = f"{category.__name__}: {without_places(str(message))[:LONGEST]}"
        if text not in self.found and len(self.found) < MOST:
            self.found.append(text)
        self._shown(message, category, *where, **more)


def without_places(text: str) -> str:
    """``text`` without the folders of this user: a Run may be passed on."""
    for find, sign in ((Path.cwd, "."), (Path.home, "~")):
        with suppress(OSError, RuntimeError):  # a folder that is gone, a user without a home
            place = str(find())
            text = text.replace(place, sign) if len(place) > 1 else text
    return text
