"""One row of a search: a setting that was tried, what came of it, and why it was kept or not."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any, Literal

from workbench.errors import SettingError
from workbench.settings import Settings, asked_of_workers
from workbench.tuning.parity import Parity
from workbench.tuning.trial import Outcome, Per

Decision = Literal["kept", "reverted", "dropped", "not tried"]
"""``dropped``: hopeless after a short first look; ``not tried``: refused, or of no use."""

NOTHING_HELPS = "nothing that was tried helps"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A change that was held against the best settings so far; ``None`` means not measured.

    ``ratio`` is the time with the change over the time without it, with its interval.
    """

    change: Settings
    base: Settings
    """The best so far, which it was added to and compared with."""
    origin: str
    """Why it was tried: the code of a finding, ``offer``, or ``loader``."""
    outcome: Outcome
    decision: Decision
    reason: str
    per: Per = "step"
    step_ns: float | None = None
    sample_ns: float | None = None
    base_step_ns: float | None = None
    base_sample_ns: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    memory_bytes: int | None = None
    """Peak of this process and its loader's processes."""
    device_bytes: int | None = None
    loss: float | None = None
    """At the end of its blocks, all of which begin at the same weights."""
    parity: Parity | None = None
    compile_s: float | None = None
    break_even_steps: int | None = None
    blocks: int = 0
    """Of each side."""
    seconds: float = 0.0
    """What the attempt took."""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """``effective`` values with the change, and ``input_share``: for what is tried after it."""

    @property
    def settings(self) -> Settings:
        """All settings that were in force."""
        return joined(self.base, self.change)

    @property
    def kept(self) -> bool:
        """Whether it is part of what followed."""
        return self.decision == "kept"

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which :meth:`from_json` makes it again."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {
            "change": self.change.to_json(),
            "base": self.base.to_json(),
            "parity": None if self.parity is None else self.parity.to_json(),
            "notes": list(self.notes),
            "facts": dict(self.facts),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Attempt":
        """What :meth:`to_json` wrote."""
        parity = values["parity"]
        return cls(
            **{
                **values,
                "change": Settings.from_json(dict(values["change"])),
                "base": Settings.from_json(dict(values["base"])),
                "parity": None if parity is None else Parity(**parity),
                "notes": tuple(values["notes"]),
            }
        )


def why_nothing(attempts: Iterable[Attempt]) -> str:
    """Why a search keeps nothing: trials that did not help are more than none at all."""
    tried = any(attempt.decision != "not tried" for attempt in attempts)
    return NOTHING_HELPS if tried else "nothing was tried"


def joined(base: Settings, change: Settings) -> Settings:
    """``base`` with what ``change`` sets, without what of ``base`` then contradicts it.

    No workers any more have no queue, another precision no loss scale: what is asked for now wins
    over what was asked for before.
    """
    asked, before = change.changes(), base.changes()
    values = {**before, **asked}
    if values.get("workers") == 0:
        gone = set(asked_of_workers(values)) - set(asked)
        values = {name: value for name, value in values.items() if name not in gone}
    older = [name for name in values if name not in asked]
    for count in range(len(older) + 1):
        for gone_too in combinations(older, count):
            with suppress(SettingError):
                return Settings(**{n: v for n, v in values.items() if n not in gone_too})
    raise AssertionError("a change is valid by itself")
