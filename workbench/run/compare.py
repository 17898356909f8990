"""Compare two Runs by their step times of record, and say when nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import RunError
from workbench.statistics.change import Change
from workbench.units import share_text, time_text

if TYPE_CHECKING:
    from workbench.pages.static import StaticFigure
    from workbench.run.run import Run

SCHEMA = "workbench.compare/1"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing besides the step time in which two Runs differ."""

    where: str
    name: str
    first: Any
    second: Any


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The verdict on two Runs; ``change.ratio`` is the second's time over the first's.

    Where the steps hold different numbers of samples, the times compared are those of a sample:
    a larger batch takes longer and is not slower for it.
    """

    first: str
    second: str
    change: Change
    per: Literal["step", "sample"]
    first_ns: tuple[float, ...]
    """What was compared: times of a step, or of a sample, in nanoseconds."""
    second_ns: tuple[float, ...]
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> str:
        """``faster`` or ``slower`` for the second Run, or ``cannot_tell``."""
        return self.change.verdict

    def to_json(self) -> dict[str, Any]:
        """The document of ``workbench compare --json``."""
        change = self.change
        return {
            "schema": SCHEMA,
            "first": self.first,
            "second": self.second,
            "verdict": change.verdict,
            "reason": change.reason,
            "ratio": change.ratio,
            "low": change.low,
            "high": change.high,
            "noise_floor": change.noise_floor,
            "smallest_effect": change.smallest_effect,
            "per": self.per,
            "median_us": {
                "first": _median_us(self.first_ns),
                "second": _median_us(self.second_ns),
            },
            "steps": {"first": len(self.first_ns), "second": len(self.second_ns)},
            "differences": [
                {"where": d.where, "name": d.name, "first": d.first, "second": d.second}
                for d in self.differences
            ],
        }

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, with its interval."""
        change = self.change
        if change.ratio is None or change.low is None or change.high is None:
            return f"≈ cannot tell: {change.reason}" if change.reason else "≈ cannot tell."
        if change.verdict == "cannot_tell":
            return (
                f"≈ cannot tell: a {self.per} of {self.second} takes {share_text(change.ratio)} of "
                f"the time of one of {self.first} "
                f"({share_text(change.low)}–{share_text(change.high)})" + _floor(change)
            )
        mark = "▲" if change.verdict == "faster" else "▼"
        return (
            f"{mark} {self.second} is {change.verdict} than {self.first}: "
            f"{_amount(change)} time a {self.per}" + _floor(change)
        )

    def figure(self) -> StaticFigure:
        """The step times of both Runs, and the verdict."""
        from workbench.pages.charts import comparison_chart

        return comparison_chart(
            self.first_ns,
            self.second_ns,
            self.change,
            names_of=(self.first, self.second),
            per=self.per,
        )

    def __repr__(self) -> str:
        from workbench.pages.comparison import comparison_text

        names = (self.first, self.second)
        return comparison_text(self.sentence, self.rows(), self.differences, names)

    def rows(self) -> list[tuple[str, str, str]]:
        """Label and both values, as text, of what was compared."""
        a, b = self.first_ns, self.second_ns
        return [
            (f"median {self.per}", time_text(_median_ns(a)), time_text(_median_ns(b))),
            ("steps measured", str(len(a)), str(len(b))),
        ]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.comparison import comparison_html

        page = comparison_html(
            self.sentence, (self.first, self.second), self.rows(), self.differences
        )
        return {"text/html": page, "text/plain": repr(self)}


def compare(first: Run, second: Run) -> Comparison:
    """Compare step times of record; both Runs must have been measured without the profiler."""
    from workbench.run.facts import steady_blocks
    from workbench.run.run import Run
    from workbench.statistics.change import compare_steps

    blocks: list[list[list[float]]] = []
    for run in (first, second):
        if not isinstance(run, Run):
            raise RunError(
                f"wb.compare needs two Runs, not a {type(run).__name__}: "
                "wb.compare(wb.open(folder), wb.open(folder2))."
            )
        timings = None if run.record is None else run.record.timings
        if timings is None or not timings.step_ns:
            raise RunError(
                f"{run.name!r} has no step times measured without the profiler, so it cannot be "
                "compared: profiled times are not real step times. Record it with wb.profile."
            )
        blocks.append([[float(ns) for ns in block] for block in steady_blocks(timings)])
    samples = _samples(first, second)
    if samples is not None:
        blocks = [_per_sample(side, n) for side, n in zip(blocks, samples, strict=True)]
    sides = [tuple(ns for block in side for ns in block) for side in blocks]
    return Comparison(
        first=first.name,
        second=second.name,
        change=compare_steps(*blocks),
        per="step" if samples is None else "sample",
        first_ns=sides[0],
        second_ns=sides[1],
        differences=differences(first, second),
    )


def _samples(first: Run, second: Run) -> tuple[float, float] | None:
    """Samples of a step of each Run, where both are known and differ."""
    sizes = [None if run.record is None else run.record.samples_per_step for run in (first, second)]
    a, b = sizes
    return (a, b) if a and b and a != b else None


def _per_sample(blocks: list[list[float]], samples: float) -> list[list[float]]:
    return [[ns / samples for ns in block] for block in blocks]


def differences(first: Run, second: Run) -> tuple[Difference, ...]:
    """Everything recorded in which two Runs differ, besides their times."""
    found: list[Difference] = []
    if first.record is None or second.record is None:
        return ()
    for where in ("settings", "effective", "environment", "seeds", "record"):
        found += _differ(where, getattr(first.record, where), getattr(second.record, where))
    if first.record.samples_per_step != second.record.samples_per_step:
        a, b = first.record.samples_per_step, second.record.samples_per_step
        found.append(Difference(where="work", name="samples_per_step", first=a, second=b))
    return tuple(found)


def _differ(where: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    names = dict.fromkeys([*a, *b])
    return [
        Difference(where=where, name=name, first=a.get(name), second=b.get(name))
        for name in names
        if a.get(name) != b.get(name)
    ]


def _amount(change: Change) -> str:
    assert change.ratio is not None
    assert change.low is not None
    assert change.high is not None
    ends = sorted((abs(1 - change.low), abs(1 - change.high)))
    low, high = (share_text(e).removesuffix(" %") for e in ends)
    sign = "−" if change.ratio < 1 else "+"
    return f"{sign}{share_text(abs(1 - change.ratio))} ({low}–{high})"


def _floor(change: Change) -> str:
    if change.noise_floor is None:
        return "."
    return f"; identical steps differ by {share_text(change.noise_floor)} within one measurement."


def _median_ns(values: tuple[float, ...]) -> float | None:
    import statistics

    return float(statistics.median(values)) if values else None


def _median_us(values: tuple[float, ...]) -> float | None:
    median = _median_ns(values)
    return None if median is None else median / 1000
