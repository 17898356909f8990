"""One way of loading, and the settings that lead to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.settings import Settings

USUAL_PREFETCH = 2
"""What torch takes where a loader with workers says nothing."""


class Config(NamedTuple):
    """Values in force; ``prefetch`` is 0 without workers. Fewer and less sort first."""

    workers: int
    prefetch: int = 0
    pin: bool = False
    batched: bool = False
    persistent: bool = False

    @classmethod
    def of(cls, effective: Mapping[str, Any]) -> "Config":
        """The loader as it is."""
        workers = int(effective.get("workers") or 0)
        return cls(
            workers=workers,
            prefetch=int(effective.get("prefetch_factor") or USUAL_PREFETCH) if workers else 0,
            pin=bool(effective.get("pin_memory")),
            batched=bool(effective.get("batched_fetch")),
            persistent=bool(workers and effective.get("persistent_workers")),
        )

    def with_workers(self, workers: int, *, persistent: bool) -> "Config":
        """The same with another number of workers; they are kept between epochs if possible."""
        if workers == 0:
            return self._replace(workers=0, prefetch=0, persistent=False)
        prefetch = self.prefetch or USUAL_PREFETCH
        return self._replace(workers=workers, prefetch=prefetch, persistent=persistent)

    def settings(self, as_it_is: "Config") -> Settings:
        """What has to be set for it on a loader as it is."""
        values: dict[str, Any] = {}
        if self.workers != as_it_is.workers:
            values["workers"] = self.workers
        if self.workers and self.prefetch != (as_it_is.prefetch or USUAL_PREFETCH):
            values["prefetch_factor"] = self.prefetch
        if self.workers and self.persistent != as_it_is.persistent:
            values["persistent_workers"] = self.persistent
        if self.pin != as_it_is.pin:
            values |= {"pin_memory": self.pin, "non_blocking": self.pin}
        if self.batched != as_it_is.batched:
            values["batched_fetch"] = self.batched
        return Settings(**values)

    @property
    def variant(self) -> str:
        """What it differs in besides the workers, in words."""
        parts = [] if self.prefetch in {0, USUAL_PREFETCH} else [f"prefetch {self.prefetch}"]
        parts += ["pinned"] if self.pin else []
        parts += ["batched fetch"] if self.batched else []
        return ", ".join(parts) or "as usual"


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """What may be switched on this loader, and how far."""

    as_it_is: Config
    workers: int
    """At most so many; 0 where the loader must load in the loop's own process."""
    why_no_more: str = ""
    """What ends the workers there."""
    persistent: bool = True
    batched: bool = False
    pin: bool = False
    prefetch: tuple[int, ...] = (4, 8)
    fixed: str | None = None
    """Why nothing at all can be switched."""
    duplicates: bool = False
    """Whether the workers that there are each read all of the data."""
