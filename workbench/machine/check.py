"""One row of the preflight."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One row: what was looked at, what was found, and what to do about it."""

    name: str
    value: str
    state: State = "ok"
    remedy: str | None = None
