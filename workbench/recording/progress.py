"""A progress bar in text, which a saved notebook shows as well as a terminal does."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from workbench.machine.audience import headless

_LEAST_S = 0.5
"""Seconds between two updates: a notebook that runs headless stores each of them."""
_STAGE_S = 0.25
"""The same where a new stage begins: at most 4 a second."""


class Progress:
    """Counts steps; silent when nobody looks or when told so.

    People look at a terminal, and at a notebook with a front end; nobody looks at a notebook that
    papermill or nbconvert runs, and what is written there stays in its log. It is plain tqdm on
    purpose: tqdm's notebook widget is dead in a saved notebook.
    """

    def __init__(self, *, shown: bool, title: str) -> None:
        self._bar: Any = _bar(title) if shown and _is_watched() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def stage(self, text: str) -> None:
        """Say what is going on; at once, unless the bar was drawn a moment ago."""
        if self._bar is not None:
            first = not self._bar.postfix
            due = time.time() - self._bar.last_print_t >= _STAGE_S
            self._bar.set_postfix_str(text, refresh=first or due)

    def expect(self, more: int) -> None:
        """How many steps are still to come."""
        if self._bar is not None:
            self._bar.total = self._bar.n + more

    def advance(self) -> None:
        """One step is done; after one that was not expected nobody knows how many are to come."""
        if self._bar is not None:
            if self._bar.total is not None and self._bar.n >= self._bar.total:
                self._bar.total = None
            self._bar.update(1)


def _is_watched() -> bool:
    if sys.stderr is None:
        return False
    if sys.stderr.isatty():
        return True
    return "ipykernel" in sys.modules and not headless()


def _bar(title: str) -> Any:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        """A bar without tqdm's monitor, a thread that would outlive it."""

        monitor_interval = 0

    return Bar(
        desc=title,
        unit="step",
        leave=False,
        mininterval=_LEAST_S,
        ncols=90,
        file=sys.stderr,
    )
