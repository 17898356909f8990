"""Attributes put on objects for a while, and taken off again exactly."""

import weakref
from typing import Any

_ABSENT = object()
_GONE_MOST = 16
"""Changes of objects that are gone are forgotten beyond this many."""


class Attributes:
    """Sets attributes of single objects; :meth:`restore` leaves every object as it was.

    Objects are not kept alive by it.
    """

    def __init__(self) -> None:
        self._changed: list[tuple[weakref.ref[Any], str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of this very object, past what its class does about it."""
        before = owner.__dict__.get(name, _ABSENT)
        if sum(known() is None for known, _, _ in self._changed) > _GONE_MOST:
            # What was there before, such as the end of a pipe, must not outlive its owner.
            self._changed = [one for one in self._changed if one[0]() is not None]
        self._changed.append((weakref.ref(owner), name, before))
        owner.__dict__[name] = value

    def restore(self) -> None:
        """Undo everything, the last first; doing it twice is fine."""
        while self._changed:
            known, name, before = self._changed.pop()
            owner = known()
            if owner is None:
                continue
            if before is _ABSENT:
                owner.__dict__.pop(name, None)
            else:
                owner.__dict__[name] = before
