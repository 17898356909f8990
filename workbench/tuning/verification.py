"""What ``wb.verify`` hands back: the gain, whether the numbers hold, and what to do."""

import statistics
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.figures.comparison import interval_text
from workbench.run.differs import Difference
from workbench.settings import Settings
from workbench.statistics.change import Change
from workbench.tuning.advice import (
    Advice,
    Bound,
    acts_on_more,
    advise,
    bound_of,
    memory_text,
    sentence,
)
from workbench.tuning.conditions import conditions_text
from workbench.tuning.differing import differing
from workbench.tuning.earlier import earlier_text
from workbench.tuning.elsewhere import elsewhere_text, pace_text
from workbench.tuning.parity import Parity
from workbench.tuning.trial import FairRuns, Per, Trial, losses_after_as_many
from workbench.units import bytes_text, spread_text, time_text

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.pages.comparison import ComparisonView
    from workbench.pages.static import StaticFigure
    from workbench.run.compare import Comparison
    from workbench.run.run import Run

SCHEMA = "workbench.verification/1"
BEFORE, AFTER, AGAIN = 0, 1, 2
WHOLE = "the same with waits for other programs"
APART = 0.02
"""Own choice: two ratios that differ by less are one for whoever reads them."""
Row = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """One setting measured against the loop without it, in turns on this machine.

    ``change.ratio`` is the time with the setting over the time without it. ``before`` and
    ``after`` are Runs with the same step times and a profiled window each, for
    ``wb.compare``; ``None`` where nothing was profiled.
    """

    settings: Settings
    """What was switched."""
    base: Settings
    """What it was compared with."""
    finding: "Finding | None" = field(repr=False)
    fair: FairRuns = field(repr=False)
    """Trials: without the setting, with it, and without it again for the noise floor."""
    parity: Parity | None
    before: "Run | None" = field(repr=False, compare=False)
    after: "Run | None" = field(repr=False, compare=False)
    folder: Path | None = field(default=None, compare=False)
    """The file in which all this is kept."""
    notes: tuple[str, ...] = ()
    elsewhere: tuple[Difference, ...] = ()
    """In what the loop of the finding differs from this one; its bound belongs there then."""

    @cached_property
    def change(self) -> Change:
        """The verdict on the step times, with its interval and the noise floor."""
        return self.fair.change(BEFORE, AFTER, again=AGAIN)

    @cached_property
    def whole_change(self) -> Change:
        """The same with the waits for processors that other programs held left in."""
        return self.fair.change(BEFORE, AFTER, again=AGAIN, whole=True)

    @property
    def per(self) -> Per:
        """Whether a step or a sample is compared."""
        return self.fair.per(BEFORE, AFTER)

    @property
    def trials(self) -> tuple[Trial, Trial]:
        """Without the setting, and with it."""
        return self.fair.trials[BEFORE], self.fair.trials[AFTER]

    @cached_property
    def bound(self) -> Bound | None:
        """What the finding said could be gained at most; ``None``: nothing, or of another loop."""
        found = self.finding
        if found is None or self.elsewhere:
            return None
        return bound_of(
            self.trials[0].step_ns,
            found.saving_ns_per_step_at_most,
            found.speedup_at_most,
            self.change,
            more=acts_on_more(found.code, self.settings),
        )

    @property
    def advice(self) -> Advice:
        """``keep``, ``revert`` or ``cannot tell``."""
        return advise(self.trials[1], self.change, self.parity)

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        before, after = self.trials
        if len(self.in_force_already) == len(self.settings.changes()):
            return f"≈ {self.settings} is in force without it already: nothing was switched."
        return sentence(
            self.settings,
            after,
            self.change,
            self.parity,
            per=self.per,
            bound=self.bound,
            elsewhere=self.finding.code if self.finding is not None and self.elsewhere else None,
            memory=memory_text(before, after),
        )

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Everything recorded in which the two differ besides their times."""
        return differing(self.fair, BEFORE, AFTER)

    @property
    def in_force_already(self) -> tuple[str, ...]:
        """Names of the settings that changed nothing, because the loop has the value by itself."""
        before, after = (trial.effective for trial in self.trials)
        same = [n for n in self.settings.changes() if before.get(n) == after.get(n)]
        return tuple(name for name in same if after.get(name) is not None)

    @property
    def break_even_steps(self) -> int | None:
        """Steps after which compilation has paid; ``None``: no gain is sure, or none compiled."""
        if self.change.verdict != "faster":
            return None
        return self.fair.break_even_steps(BEFORE, AFTER)

    def compare(self) -> "Comparison | None":
        """Where the difference arose, from the profiled windows; ``None`` without them."""
        if self.before is None or self.after is None:
            return None
        from workbench.run.compare import compare

        return compare(self.before, self.after)

    def figure(self) -> "StaticFigure":
        """The step times of both sides, and the verdict."""
        from workbench.pages.charts import comparison_chart

        return comparison_chart(
            *self._times, self.change, names_of=("without", f"with {self.settings}"), per=self.per
        )

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data; ``null`` means not measured, times in microseconds."""
        from workbench.tuning.document import verification_document

        return {"schema": SCHEMA, **verification_document(self)}

    def __repr__(self) -> str:
        from workbench.pages.comparison import comparison_text

        return comparison_text(self._view())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.comparison import comparison_html

        return {"text/html": comparison_html(self._view()), "text/plain": repr(self)}

    @property
    def _times(self) -> tuple[list[float], list[float]]:
        clean = self.fair.undisturbed(BEFORE, AFTER, AGAIN)
        a, b = (
            [ns for block in trial.times(self.per, undisturbed=clean) for ns in block]
            for trial in self.trials
        )
        return a, b

    def _view(self) -> "ComparisonView":
        from workbench.pages.comparison import ComparisonView

        return ComparisonView(
            names=("without", "with"),
            differences=self.differences,
            sentence=self.sentence,
            rows=[*self._time_rows(), *self._other_rows()],
            notes=self._remarks(),
        )

    def _time_rows(self) -> list[Row]:
        a, b = self.trials
        per, clean = self.per, self.fair.undisturbed(BEFORE, AFTER, AGAIN)
        shown = [statistics.median(side) if side else None for side in self._times]
        counts = [sum(len(block.step_ns) for block in trial.blocks) for trial in (a, b)]
        rows = [
            (f"median {per} of all blocks", time_text(shown[0]), time_text(shown[1])),
            ("steps measured", str(counts[0]), str(counts[1])),
        ]
        if clean:
            whole = [trial.sample_ns if per == "sample" else trial.step_ns for trial in (a, b)]
            rows.insert(1, (WHOLE, time_text(whole[0]), time_text(whole[1])))
        if a.compile_s is not None or b.compile_s is not None:
            first, second = (None if t.compile_s is None else t.compile_s * 1e9 for t in (a, b))
            rows.append(("compilation", time_text(first), time_text(second)))
        return rows

    def _other_rows(self) -> list[Row]:
        rows: list[Row] = []
        for label, name in (
            ("peak memory of the process", "peak_rss_bytes"),
            ("memory of loader processes", "workers_bytes"),
            ("peak memory on the device", "device_peak_bytes"),
        ):
            a, b = (getattr(trial, name) for trial in self.trials)
            if a or b:
                rows.append((label, bytes_text(a), bytes_text(b)))
        first, second = losses_after_as_many(*self.trials)
        if first is not None or second is not None:
            rows.append(("loss after as many samples", _loss_text(first), _loss_text(second)))
        return rows

    def _remarks(self) -> list[str]:
        said = [*self.notes, *self.fair.notes]
        if self.finding is not None and self.elsewhere:
            said.insert(0, elsewhere_text(self.finding, self.elsewhere))
        elif (text := pace_text(self.finding, self.trials[0])) is not None:
            said.insert(0, text)
        if (text := earlier_text(self)) is not None:
            said.insert(0, text)
        change, steps = self.change, self.break_even_steps
        for name in self.in_force_already:
            said.append(f"{name} has this value without the setting already.")
        if self.parity is not None:
            said.append(f"Numbers: {self.parity.reason}")
        if change.noise_floor is not None:
            said.append(
                f"Without the setting, blocks of the same steps differ by "
                f"{spread_text(change.noise_floor)} (noise floor)."
            )
        said.append(_medians(change, *self._times))
        if self.fair.undisturbed(BEFORE, AFTER, AGAIN):
            said.append(_disturbance(self.whole_change, self.per))
        blocks = [block.conditions for trial in self.fair.trials for block in trial.blocks]
        said.append(conditions_text(blocks))
        if steps is not None:
            said.append(f"Compilation has paid after {steps} steps.")
        if self.folder is not None:
            said.append(f"Kept in {self.folder}.")
        return [text for text in said if text]


def _disturbance(whole: Change, per: Per) -> str:
    if whole.ratio is None or whole.low is None or whole.high is None:
        return ""
    return (
        "The verdict leaves out waits for processors that other programs held; with them a "
        f"{per} takes {interval_text(whole.ratio, whole.low, whole.high)} time."
    )


def _medians(change: Change, a: list[float], b: list[float]) -> str:
    """Why the medians of the table, whose ratio anyone can take, are not the verdict's number."""
    if change.ratio is None or change.low is None or not a or not b:
        return ""
    ratio = statistics.median(b) / statistics.median(a)
    if abs(ratio - change.ratio) < APART:
        return ""
    return (
        "The verdict compares blocks that took turns, pair by pair; the medians above are of all "
        f"steps together, and their ratio is {ratio:.2f} for the verdict's {change.ratio:.2f}."
    )


def _loss_text(loss: float | None) -> str:
    return "not measured" if loss is None else f"{loss:.4g}"
