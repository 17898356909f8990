"""Who is told that something has happened in a session."""

import weakref
from collections.abc import Callable
from typing import Any, Literal

Kind = Literal["state", "change", "burst", "trial", "error"]


class Listeners:
    """Calls back; an error of a listener is handed to ``failed`` and disturbs nobody.

    Bound methods are held weakly, so that a widget that was deleted goes away by itself.
    """

    def __init__(self) -> None:
        self.failed: str | None = None
        """What a listener raised last."""
        self._known: tuple[Callable[[], Callable[[str], Any] | None], ...] = ()

    def add(self, callback: Callable[[str], Any]) -> Callable[[], None]:
        """Call ``callback(kind)`` from now on; returns what ends that."""
        held: Callable[[], Callable[[str], Any] | None]
        if hasattr(callback, "__self__") and hasattr(callback, "__func__"):
            held = weakref.WeakMethod(callback)
        else:
            held = _strongly(callback)
        self._known = (*self._known, held)

        def unlisten() -> None:
            self._known = tuple(one for one in self._known if one is not held)

        return unlisten

    def tell(self, kind: Kind) -> None:
        """Something of this kind has happened."""
        for held in self._known:
            callback = held()
            if callback is None:
                self._known = tuple(one for one in self._known if one is not held)
                continue
            try:
                callback(kind)
            except Exception as error:  # noqa: BLE001 - of others, and shown in the state
                self.failed = f"a listener failed: {type(error).__name__}: {error}"


def _strongly(callback: Callable[[str], Any]) -> Callable[[], Callable[[str], Any]]:
    return lambda: callback
