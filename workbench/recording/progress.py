"""A progress bar in text, which a saved notebook shows as well as a terminal does."""

import sys
from types import TracebackType
from typing import Any, Self

_LEAST_S = 0.5
"""Seconds between two updates: a notebook stores each of them when it runs headless."""


class Progress:
    """Counts steps; silent when nobody looks (no terminal, no notebook) or when told so.

    It is plain tqdm on purpose: tqdm's notebook widget is dead in a saved or headless notebook.
    """

    def __init__(self, *, shown: bool, title: str) -> None:
        from tqdm import tqdm

        watched = sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._bar: Any = tqdm(
            desc=title,
            unit="step",
            leave=False,
            mininterval=_LEAST_S,
            maxinterval=_LEAST_S * 4,
            dynamic_ncols=False,
            ncols=90,
            disable=not (shown and watched),
            file=sys.stderr,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def stage(self, text: str) -> None:
        """Say what is going on."""
        self._bar.set_postfix_str(text, refresh=False)

    def expect(self, more: int) -> None:
        """How many steps are still to come."""
        self._bar.total = self._bar.n + more

    def advance(self) -> None:
        """One step is done."""
        self._bar.update(1)
