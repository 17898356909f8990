"""Compare two Runs: the verdict on their step times, in what they differ, and where it arose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import RunError
from workbench.figures.comparison import MARKS, interval_text
from workbench.run.beside import beside
from workbench.run.beside_workers import of_workers
from workbench.run.differs import Difference, differences
from workbench.statistics.change import Change
from workbench.units import count_text, spread_text, time_text

if TYPE_CHECKING:
    import pandas as pd

    from workbench.findings import Finding
    from workbench.pages.comparison import ComparisonView
    from workbench.pages.static import StaticFigure
    from workbench.run.profiled import ProfiledSteps
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run
    from workbench.run.where import Where

SCHEMA = "workbench.compare/1"
LONGEST_NAME = 32
FigureName = Literal["steps", "breakdown", "families", "kernels", "operators"]

__all__ = ["Comparison", "Difference", "compare"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The verdict on two Runs; ``change.ratio`` is the second's time over the first's.

    Where the steps hold different numbers of samples, the times compared are those of a sample:
    a larger batch takes longer and is not slower for it. The verdict rests on step times without
    the profiler; traces alone get none. The tables ``breakdown``, ``families``, ``kernels`` and
    ``operators`` say where the difference arose, under the profiler.
    """

    first: str
    second: str
    change: Change
    per: Literal["step", "sample"]
    first_ns: tuple[float, ...]
    """What was compared: times of a step, or of a sample, in nanoseconds."""
    second_ns: tuple[float, ...]
    runs: tuple[Run, Run] = field(repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """``faster`` or ``slower`` for the second Run, or ``cannot_tell``."""
        return self.change.verdict

    @property
    def called(self) -> tuple[str, str]:
        """The names as sentences use them: long ones, of files, would hide what is said."""
        if max(len(self.first), len(self.second)) > LONGEST_NAME:
            return "the first", "the second"
        return self.first, self.second

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Everything recorded in which the two differ besides their times."""
        return differences(*self.runs)

    @cached_property
    def profiled(self) -> ProfiledSteps | None:
        """Step times under the profiler, which are not real ones; ``None`` without steps."""
        from workbench.run.profiled import profiled_steps

        return profiled_steps(*self.runs, per=self._samples)

    @cached_property
    def where(self) -> tuple[Where, ...]:
        """The tables, rank by rank for the ranks that both have."""
        from workbench.run.where import where

        made = []
        change = self.change
        drowned = change.verdict == "cannot_tell" and change.low is not None
        within = change.noise_floor if drowned else None
        for one, other in self._pairs[0]:
            made.append(
                where(one, other, names=self.called, samples=self._samples, host_noise=within)
            )
            for run, rank in zip(self.runs, (one, other), strict=True):
                if run.job is not None:
                    run.job.rest(rank)
        return tuple(made)

    @property
    def breakdown(self) -> pd.DataFrame | None:
        """Time moved between the parts of a step; they sum to the step on both sides."""
        return self._table(lambda found: found.breakdown)

    @property
    def families(self) -> pd.DataFrame | None:
        """Kernels summed by family, which compares across makers of devices."""
        return self._table(lambda found: found.families)

    @property
    def kernels(self) -> pd.DataFrame | None:
        """Kernels added, removed, renamed, faster and slower, the largest difference first."""
        return self._table(lambda found: found.kernels)

    @property
    def operators(self) -> pd.DataFrame | None:
        """Framework operators, the largest difference first."""
        return self._table(lambda found: found.operators)

    @property
    def notes(self) -> tuple[str, ...]:
        """Step times of traces alone, what limits the tables, and why one of them is ``None``."""
        found = self.where[0]
        under = None if self.first_ns and self.second_ns else self.profiled
        told = () if under is None else (under.sentence(*self.called),)
        said = (self.moved_wait, self.changed_count, self.break_even)
        moved = tuple(finding.title for finding in said if finding is not None)
        reasons = dict.fromkeys(found.reasons.values())
        workers = of_workers(self.runs, self.called)
        return (*told, *self.bounds_held, *moved, *workers, *self._pairs[1], *found.notes, *reasons)

    @cached_property
    def bounds_held(self) -> tuple[str, ...]:
        """Of a setting that a finding of the first advised: whether its gain is in the bound."""
        from workbench.run.bounds import bounds_held

        return bounds_held(*self.runs, self.change)

    @cached_property
    def moved_wait(self) -> Finding | None:
        """Where steps take as long as before: whether a wait for the device only moved (WB204)."""
        from workbench.findings import Facts, moved_wait
        from workbench.run.facts import sync_calls_of

        if self.change.ratio is None or self.change.verdict != "cannot_tell" or self._samples:
            return None
        first, second = (
            Facts(rank=rank.rank, sync_calls=sync_calls_of(rank)) for rank in self._pairs[0][0]
        )
        return moved_wait(first, second, verdict=self.change.verdict)

    @cached_property
    def changed_count(self) -> Finding | None:
        """Whether an epoch has another number of samples than before (WB109)."""
        from workbench.findings import changed_count
        from workbench.run.facts import recorded

        return changed_count(*(recorded(run.record) for run in self.runs))

    @cached_property
    def break_even(self) -> Finding | None:
        """Where one of the two Runs compiled: from which step on that pays (WB206)."""
        from workbench.findings import compile_break_even
        from workbench.run.facts import recorded

        before, after, saved = _median_ns(self.first_ns), _median_ns(self.second_ns), None
        if before is not None and after is not None and self.change.verdict != "cannot_tell":
            saved = before - after
        first, second = (recorded(run.record) for run in self.runs)
        return compile_break_even(first, second, saved_ns=saved, per=self.per)

    def to_json(self) -> dict[str, Any]:
        """The document of ``workbench compare --json``."""
        from workbench.run.compare_json import comparison_document

        return {"schema": SCHEMA, **comparison_document(self)}

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, with its interval."""
        change = self.change
        if change.ratio is None or change.low is None or change.high is None:
            return f"≈ cannot tell: {change.reason}" if change.reason else "≈ cannot tell."
        if change.too_noisy or change.uneven:
            return f"{MARKS[change.verdict]} cannot tell: {change.reason}"
        mark, took = MARKS[change.verdict], interval_text(change.ratio, change.low, change.high)
        a, b = self.called
        if change.verdict == "cannot_tell":
            said = f"{mark} cannot tell: a {self.per} of {b} takes {took} time than one of {a}"
        else:
            said = f"{mark} {b} is {change.verdict} than {a}: {took} time a {self.per}"
        return said + _floor(change)

    def figure(self, name: FigureName = "steps") -> StaticFigure:
        """A chart: steps (both Runs and the verdict), breakdown, families, kernels, operators."""
        from workbench.run.compare_view import comparison_figure

        return comparison_figure(self, name)

    def rows(self) -> list[tuple[str, str, str]]:
        """Label and both values, as text, of what was compared."""
        a, b = self.first_ns, self.second_ns
        rows = []
        if a or b:
            medians = time_text(_median_ns(a)), time_text(_median_ns(b))
            rows += [(f"median {self.per}", *medians), ("steps measured", str(len(a)), str(len(b)))]
        under = self.profiled
        if under is not None:
            text = [time_text(sum(side) / len(side)) for side in (under.first_ns, under.second_ns)]
            rows.append((f"{self.per} under the profiler", text[0], text[1]))
        return [*rows, *beside(*self.runs)]

    def __repr__(self) -> str:
        from workbench.pages.comparison import comparison_text

        return comparison_text(self._view())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.comparison import comparison_html

        return {"text/html": comparison_html(self._view()), "text/plain": repr(self)}

    def _view(self) -> ComparisonView:
        from workbench.run.compare_view import comparison_view

        return comparison_view(self)

    @property
    def charts(self) -> tuple[FigureName, ...]:
        """The charts worth showing of these two, the most telling first."""
        found = self.where[0]
        names: list[FigureName] = ["steps"] if self.first_ns and self.second_ns else []
        if found.breakdown is not None:
            names.append("breakdown")
        if found.kernels is not None:
            names.append("families" if found.across_vendors else "kernels")
        elif found.operators is not None:
            names.append("operators")
        return tuple(names)

    @property
    def _samples(self) -> tuple[float, float] | None:
        return _samples(*self.runs)

    @property
    def rank_pairs(self) -> tuple[tuple[RankAnalysis, RankAnalysis], ...]:
        """The ranks that are compared with each other."""
        return self._pairs[0]

    @cached_property
    def _pairs(self) -> tuple[tuple[tuple[RankAnalysis, RankAnalysis], ...], tuple[str, ...]]:
        return _pair_ranks(self.runs, self.called)

    def _table(self, ask: Callable[[Where], pd.DataFrame | None]) -> pd.DataFrame | None:
        """The tables of all pairs of ranks as one, with a column for the rank where several."""
        import pandas as pd

        from workbench.run.shown import Shown

        found = [(pair, ask(each)) for pair, each in zip(self._pairs[0], self.where, strict=True)]
        tables = [(pair, table) for pair, table in found if table is not None]
        if not tables:
            return None
        if len(self._pairs[0]) == 1:
            return Shown(tables[0][1])
        whole = Shown(pd.concat([table for _, table in tables], ignore_index=True))
        whose = [pair[0].rank for pair, table in tables for _ in range(len(table))]
        whole.insert(0, "rank", pd.Series(whose, dtype="Int64"))
        return whole


def compare(first: Run, second: Run) -> Comparison:
    """Compare two Runs, two traces, or one with the other.

    The verdict needs step times measured without the profiler on both sides; where a side is a
    trace alone, everything else is compared and the verdict is ``cannot_tell``.
    """
    from workbench.run.run import Run

    for run in (first, second):
        if not isinstance(run, Run):
            raise RunError(
                f"wb.compare needs two Runs, not a {type(run).__name__}: "
                "wb.compare(wb.open(folder), wb.open(folder2))."
            )
    samples = _samples(first, second)
    names = _names(first, second)
    times = [_blocks(run) for run in (first, second)]
    if samples is not None:
        times = [_per_sample(side, n) for side, n in zip(times, samples, strict=True)]
    called = names if max(map(len, names)) <= LONGEST_NAME else ("the first", "the second")
    sides = [tuple(ns for block in side for ns in block) for side in times]
    return Comparison(
        first=names[0],
        second=names[1],
        change=_change(times, called, interleaved=_took_turns(first, second)),
        per="step" if samples is None else "sample",
        first_ns=sides[0],
        second_ns=sides[1],
        runs=(first, second),
    )


def _names(first: Run, second: Run) -> tuple[str, str]:
    """What the two are called; told apart by their folders where the names are the same."""
    if first.name != second.name:
        return first.name, second.name
    folders = [run.traces[0].parent.name if run.traces else "" for run in (first, second)]
    if folders[0] != folders[1]:
        return f"{folders[0]}/{first.name}", f"{folders[1]}/{second.name}"
    return f"{first.name} (first)", f"{second.name} (second)"


def _blocks(run: Run) -> list[tuple[float, ...]]:
    """Blocks of step times of record, each step as its pace; none for a trace alone."""
    from workbench.run.facts import paced_blocks

    return [] if run.record is None else paced_blocks(run.record)


def _took_turns(first: Run, second: Run) -> bool:
    """Whether both were measured block by block beside each other."""
    marks = [
        None if run.record is None or run.record.timings is None else run.record.timings.turns
        for run in (first, second)
    ]
    return marks[0] is not None and marks[0] == marks[1]


def _change(
    blocks: list[list[tuple[float, ...]]], names: tuple[str, str], *, interleaved: bool
) -> Change:
    from workbench.statistics.change import compare_steps

    lacking = [name for name, side in zip(names, blocks, strict=True) if not side]
    if not lacking:
        return compare_steps(*blocks, interleaved=interleaved)
    counts = [sum(map(len, side)) for side in blocks]
    whom = "both traces" if len(lacking) > 1 else lacking[0]
    have = "have" if len(lacking) > 1 else "has"
    return Change(
        verdict="cannot_tell",
        ratio=None,
        n_a=counts[0],
        n_b=counts[1],
        reason=f"{whom} {have} no step times of record; only wb.profile measures them.",
    )


def _pair_ranks(
    runs: tuple[Run, Run], names: tuple[str, str]
) -> tuple[tuple[tuple[RankAnalysis, RankAnalysis], ...], tuple[str, ...]]:
    """The ranks that both Runs have, and what is said about the others."""
    first, second = (run.ranks for run in runs)
    if len(first) == len(second) == 1:
        return ((first[0], second[0]),), ()
    by_number = {rank.rank: rank for rank in second if rank.rank is not None}
    pairs = [(one, by_number[one.rank]) for one in first if one.rank in by_number]
    if not pairs and 1 in (len(first), len(second)):
        alone, many = (0, 1) if len(first) == 1 else (1, 0)
        of = (first, second)[many]
        number = "the first rank" if of[0].rank is None else f"rank {of[0].rank}"
        return ((first[0], second[0]),), (
            f"{names[alone]} is one process and {names[many]} has {count_text(len(of))} ranks: "
            f"where time goes is shown of {number} beside it; samples per second are those of all.",
        )
    if not pairs:
        return ((first[0], second[0]),), (
            f"{names[0]} and {names[1]} have no rank in common: the first of each is compared.",
        )
    told = [
        f"{count_text(len(pairs))} ranks are compared with their like; "
        f"what is shown is of rank {pairs[0][0].rank}, the tables hold all."
    ]
    for name, ranks in zip(names, (first, second), strict=True):
        alone = len(ranks) - len(pairs)
        if alone:
            told.append(f"{name} has {count_text(alone)} more that the other does not have.")
    return tuple(pairs), tuple(told)


def _samples(first: Run, second: Run) -> tuple[float, float] | None:
    """Samples of a step of each Run, where both are known and differ."""
    sizes = [None if run.record is None else run.record.samples_per_step for run in (first, second)]
    a, b = sizes
    return (a, b) if a and b and a != b else None


def _per_sample(blocks: list[tuple[float, ...]], samples: float) -> list[tuple[float, ...]]:
    return [tuple(ns / samples for ns in block) for block in blocks]


def _floor(change: Change) -> str:
    if change.noise_floor is None:
        return "."
    return f"; identical steps differ by {spread_text(change.noise_floor)} within one measurement."


def _median_ns(values: tuple[float, ...]) -> float | None:
    import statistics

    return float(statistics.median(values)) if values else None
