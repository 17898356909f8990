"""What a sweep hands back: the choice, every way of loading that was tried, and why."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from workbench.settings import Settings
from workbench.tuning.sweep.climb import Ended

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pages.static import StaticFigure

SCHEMA = "workbench.loader_sweep/1"


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """One way of loading; times are nanoseconds, and ``None`` means not measured."""

    workers: int
    prefetch_factor: int | None
    pin_memory: bool
    persistent_workers: bool
    batched_fetch: bool
    variant: str
    """What it differs in besides the workers."""
    settings: Settings
    """What leads to it from the loop as it is."""
    outcome: str
    """``measured``, ``excluded`` by a bound, ``refused``, ``out_of_memory``, ``error`` …"""
    reason: str | None = None
    step_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None
    """Ends of the 95 % interval of the step."""
    pace_ns: float | None = None
    """The step with its part of what starting the loader costs in every epoch."""
    startup_ns: float | None = None
    samples_per_s: float | None = None
    memory_bytes: int | None = None
    """Of this process and its loader's processes."""
    blocks: int = 0
    as_it_is: bool = False
    chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class LoaderSweep:
    """The best way of loading for this loop on this machine, by short trials."""

    title: str
    """Of the workload."""
    settings: Settings
    """The choice; empty where the loader stays as it is."""
    sentence: str
    """What was chosen, and why."""
    rows: tuple[SweepRow, ...] = field(repr=False)
    ended: Ended
    ceiling_ns: float | None = None
    """The step if the loader were free."""
    batch_ns: float | None = None
    """The time in which one process makes a batch."""
    noise: float | None = None
    """What the same loader differs from itself on this machine, as a share: ties are within."""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    """Step with the choice over the step as it is, start-up included, and its 95 % interval."""
    elapsed_s: float
    notes: tuple[str, ...] = ()

    @property
    def trials(self) -> "pd.DataFrame":
        """A row for each way of loading, measured or not."""
        import pandas as pd

        named = [{**asdict(row), "settings": str(row.settings)} for row in self.rows]
        from workbench.run.shown import Shown

        return Shown(pd.DataFrame(named, columns=[each.name for each in fields(SweepRow)]))

    def figure(self) -> "StaticFigure":
        """The step against the workers, a line for each variant, with its intervals."""
        from workbench.pages.sweep import sweep_chart

        return sweep_chart(
            [{**asdict(row), "settings": str(row.settings)} for row in self.rows],
            self.ceiling_ns,
            title=self.sentence,
        )

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data; ``null`` means not measured."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        rows = [{**asdict(row), "settings": row.settings.to_json()} for row in self.rows]
        return {
            "schema": SCHEMA,
            **values,
            "settings": self.settings.to_json(),
            "rows": rows,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "LoaderSweep":
        """What :meth:`to_json` wrote."""
        given = {name: value for name, value in values.items() if name != "schema"}
        rows = [
            SweepRow(**{**row, "settings": Settings.from_json(dict(row["settings"]))})
            for row in given["rows"]
        ]
        return cls(
            **{
                **given,
                "settings": Settings.from_json(dict(given["settings"])),
                "rows": tuple(rows),
                "notes": tuple(given["notes"]),
            }
        )

    def __repr__(self) -> str:
        return self.figure().text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return self.figure()._repr_mimebundle_()
