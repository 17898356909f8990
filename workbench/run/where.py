"""Where two ranks differ: parts of a step, kernel families, kernels and operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from workbench.run.breakdowns import doubt
from workbench.run.differs import device_names, device_types
from workbench.run.sides import side_of
from workbench.run.summary import not_idle_because
from workbench.units import count_text, share_text, significant

if TYPE_CHECKING:
    import pandas as pd

    from workbench.run.rank import RankAnalysis

Per = Literal["step", "sample", "window"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Where:
    """The tables of one pair of ranks; a table that could not be made is ``None``."""

    per: Per
    """What the times are of. ``window``: a side marks no steps, whole recordings are compared."""
    steps: tuple[int, int]
    """Steps that count on each side; 0 where none is marked."""
    breakdown: pd.DataFrame | None
    breakdown_of: tuple[str, str]
    """Whose time the breakdown divides."""
    families: pd.DataFrame | None
    kernels: pd.DataFrame | None
    operators: pd.DataFrame | None
    across_vendors: bool
    """Whether the devices are of different makers: then only families compare."""
    reasons: Mapping[str, str]
    """Why a table is ``None``."""
    notes: tuple[str, ...]
    """What limits these tables, a sentence each."""


def where(
    first: RankAnalysis,
    second: RankAnalysis,
    *,
    names: tuple[str, str],
    samples: tuple[float, float] | None = None,
    host_noise: float | None = None,
) -> Where:
    """Compare two ranks in full.

    Args:
        first: A rank of the first Run.
        second: A rank of the second.
        names: What the Runs are called.
        samples: Samples of a step of each, where they are known and differ.
        host_noise: Relative noise of the step times, where the verdict on them drowns in it: the
            host's times that differ by less are no difference either.
    """
    pair = _Pair(first, second, names=names, samples=samples)
    breakdown, families, kernels = pair.breakdown(), pair.families(), pair.kernels()
    operators = pair.operators()
    told = pair.notes(kernels)
    if host_noise is not None:
        shown = operators, breakdown
        if operators is not None:
            operators = within_noise(operators, host_noise, _by(operators))
        if breakdown is not None and pair.a.on == "host":
            breakdown = within_noise(breakdown, host_noise, "host")
        if any(
            before is not None and after is not None and not before.equals(after)
            for before, after in zip(shown, (operators, breakdown), strict=True)
        ):
            told += (_NOISY,)
    return Where(
        per=pair.per,
        steps=(pair.a.steps, pair.b.steps),
        breakdown=breakdown,
        breakdown_of=(pair.a.of, pair.b.of),
        families=families,
        kernels=kernels,
        operators=operators,
        across_vendors=pair.across_vendors,
        reasons=pair.reasons,
        notes=told,
    )


_NOISY = (
    "Profiled on a noisy machine: times of the host that differ by less than identical steps do "
    "are marked ≈."
)


def _by(operators: pd.DataFrame) -> str:
    return str(operators["by"].iloc[0]) if len(operators) else "host"


def within_noise(table: pd.DataFrame, noise: float, by: str) -> pd.DataFrame:
    """The table with the host's times that differ by less than the noise called the same."""
    table = table.copy()
    for prefix, on_host in (("", by == "host"), ("host_", True)):
        if f"{prefix}change" not in table:
            continue
        both = table[[f"{prefix}first_ns", f"{prefix}second_ns"]]
        hidden = (both.max(axis=1) <= both.min(axis=1) * (1 + noise)) & on_host
        told = table[f"{prefix}change"].isin(("faster", "slower"))
        table.loc[hidden & told, f"{prefix}change"] = "same"
    return table


class _Pair:
    """Two ranks on the way to their tables."""

    def __init__(
        self,
        first: RankAnalysis,
        second: RankAnalysis,
        *,
        names: tuple[str, str],
        samples: tuple[float, float] | None,
    ) -> None:
        self.ranks, self.names = (first, second), names
        a, b = side_of(first), side_of(second)
        self.per: Per = "step" if samples is None else "sample"
        if not a.steps or not b.steps:
            self.per, a, b = "window", a.summed(), b.summed()
        self.a, self.b = a, b
        self.divided = samples if samples is not None and self.per == "sample" else (1.0, 1.0)
        self.reasons: dict[str, str] = {}

    @property
    def across_vendors(self) -> bool:
        """Whether the devices are of different makers."""
        one, other = map(device_types, self.ranks)
        return bool(one and other and not one & other)

    def breakdown(self) -> pd.DataFrame | None:
        """Time moved between categories."""
        from workbench.analysis.difference.categories import category_table

        a, b = self.a, self.b
        if a.parts is None or b.parts is None:
            lacking = [n for n, s in zip(self.names, (a, b), strict=True) if s.parts is None]
            self.reasons["breakdown"] = f"{_and(lacking)}: no part of a step was recorded."
            return None
        if a.on != b.on:
            worked = self.names[0] if a.on == "device" else self.names[1]
            self.reasons["breakdown"] = (
                f"only {worked} recorded work on a device, so the parts of a step are of another "
                "kind; operators can be compared."
            )
            return None
        doubts = {doubt(rank) for rank in self.ranks}
        return category_table(
            a.parts,
            b.parts,
            per=self.divided,
            causes=not doubts & {"causes", "times"},
            certain="times" not in doubts and not self._void("steps"),
        )

    def families(self) -> pd.DataFrame | None:
        """Kernel families; the names of different makers' kernels cannot be compared."""
        from workbench.analysis.difference.matching import match_names
        from workbench.analysis.difference.table import difference_table

        if self.a.kernels is None or self.b.kernels is None:
            return None
        a, b = self.a.kernels.grouped(), self.b.kernels.grouped()
        pairs = match_names(a, b)
        return difference_table(a, b, pairs, per=self.divided, certain=not self._void("kernels"))

    def kernels(self) -> pd.DataFrame | None:
        """Kernels by name, or why they cannot be compared."""
        from workbench.analysis.difference.matching import match_kernels
        from workbench.analysis.difference.table import difference_table

        a, b = self.a.kernels, self.b.kernels
        if a is None or b is None:
            sides = zip(self.names, (a, b), self.ranks, strict=True)
            why = {name: not_idle_because(rank) for name, s, rank in sides if s is None}
            told = "; ".join(f"{name}: {reason}" for name, reason in why.items())
            if len(why) > 1 and len(set(why.values())) == 1:
                told = f"in both, {next(iter(why.values()))}"
            self.reasons["kernels"] = self.reasons["families"] = f"No kernels to compare; {told}."
            return None
        pairs = match_kernels(a, b, renamed=not self.across_vendors)
        return difference_table(a, b, pairs, per=self.divided, certain=not self._void("kernels"))

    def operators(self) -> pd.DataFrame | None:
        """Operators by the device time of what they launched, else by their own host time."""
        from workbench.analysis.difference.operator_table import operator_differences

        a, b = self.a.operators, self.b.operators
        if a is None or b is None:
            lacking = [n for n, each in zip(self.names, (a, b), strict=True) if each is None]
            self.reasons["operators"] = f"{_and(lacking)}: no operator of the framework in it."
            return None
        certain = not (self._void("operator_device_time") or self._void("kernels"))
        return operator_differences(a, b, per=self.divided, certain=certain)

    def _void(self, what: str) -> bool:
        return any(rank.voids(what) for rank in self.ranks)

    def notes(self, kernels: pd.DataFrame | None) -> tuple[str, ...]:
        """What limits the tables, a sentence each."""
        found = (*self._basis(), *self._device_notes(kernels))
        return tuple(f"{note[0].upper()}{note[1:]}" for note in found)

    def _basis(self) -> list[str]:
        notes = []
        if self.per == "window":
            sides = zip(self.names, (self.a, self.b), strict=True)
            told = [
                f"{n} has {count_text(s.steps)} steps" if s.steps else f"{n} marks none"
                for n, s in sides
            ]
            which = ", ".join(told) if self.a.steps or self.b.steps else "neither marks any"
            notes.append(
                f"Whole recordings are compared, not steps ({which}): times can only be compared "
                "if both did the same work."
            )
        elif min(self.a.steps, self.b.steps) < 2:
            notes.append("One step alone tells no spread: nothing is called faster or slower.")
        for name, rank in zip(self.names, self.ranks, strict=True):
            if any(violation.voids for violation in rank.own_trust.violations):
                notes.append(f"{name} fails its own checks: numbers that rest on them are open.")
            if rank.voids("busy"):
                notes.append(f"{name} lacks work: what seems removed may not have been recorded.")
        return notes

    def _device_notes(self, kernels: pd.DataFrame | None) -> list[str]:
        from workbench.analysis.difference.shift import common_shift

        made = [" and ".join(device_names(rank)) for rank in self.ranks]
        if self.across_vendors and kernels is not None:
            return [
                f"{made[0]} and {made[1]} run different libraries, whose kernels have other names: "
                "compare by family."
            ]
        shift = None if kernels is None or made[0] != made[1] else common_shift(kernels)
        if shift is None:
            return []
        return [
            f"Nearly every kernel takes {_changed(shift)} a call: look at clocks, heat and other "
            "users of the device before the program."
        ]


def _changed(shift: float) -> str:
    """A relative change in words; from double or half on as a factor."""
    if shift >= 1 or -1 < shift <= -0.5:
        return f"{significant(1 + shift)} times as long"
    return f"{share_text(abs(shift))} {'longer' if shift > 0 else 'shorter'}"


def _and(names: list[str]) -> str:
    return " and ".join(dict.fromkeys(names))
