"""Several settings measured under the same conditions: interleaved blocks, each from one start."""

import statistics
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import SettingError, TimeLimitError
from workbench.profiling.memory import what_held
from workbench.recording.ownership import claim
from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.tuning import fresh
from workbench.tuning.block import LEAST_STEPS, About, Measuring, measure, warm_up
from workbench.tuning.outcome import outcome_of
from workbench.tuning.trial import Ended, FairBlock, FairRuns, Outcome, Trial

if TYPE_CHECKING:
    from workbench.workload import Workload

__all__ = ["FairBlock", "FairRuns", "Trial", "fair_blocks"]

WHAT = "the comparison of settings"


def fair_blocks(
    work: "Workload",
    settings: Sequence[Settings | None],
    *,
    steps: int,
    blocks: int,
    time_limit_s: float | None,
    progress: Progress | None = None,
    interrupted: Callable[[], bool] | None = None,
    warmed: MutableMapping[Settings, float] | None = None,
) -> FairRuns:
    """Measure several settings in turns, so that whatever the machine does meets all of them.

    The settings take turns, A B C, then C B A, then B C A and A C B, and so on: a drift, and a load
    that comes and goes, meet all alike. Before every block the training is set up anew and after it
    put back, so each starts from the same weights, optimizer state, random state and place in the
    data, and reads the same batches in the same order. A setting that changes the batch size gets
    as many steps as make the same number of samples. Starting the loader, the steps until its
    workers' queue is steady and warm-up by the change test are not in the step times. Give a
    setting twice to see what it differs from itself.

    Where one of the settings needs several processes, every block of every setting is measured in
    fresh ones, started for it: see ``fresh``.

    A setting that cannot act, runs out of memory, fails or hangs is a result and does not stop the
    others. The first interrupt or the time limit ends the measurement with what there is. After
    it everything is as it was.

    Args:
        work: Model, data and step.
        settings: What to compare; the first is what batch sizes are counted in.
        steps: Steps of a block that count, of the first setting.
        blocks: Blocks of each setting.
        time_limit_s: Seconds for everything; ``None`` sets no limit.
        progress: Is told what goes on.
        interrupted: Is asked between steps; true ends the measurement.
        warmed: Seconds of a step of settings that this process has warmed up before, which are not
            warmed up again; the others are added.

    Returns:
        One trial a setting; ``ended`` says whether all turns were taken.

    Raises:
        ProfilerBusyError: A profiler is active in this process: it would slow some blocks down.
        SettingError: The order itself makes no sense.
    """
    _check(settings, steps, blocks, time_limit_s)
    mine = claim(WHAT)
    try:
        turns = _Turns(
            work=work,
            drafts=[_Draft(settings=each or Settings()) for each in settings],
            steps=steps,
            measuring=Measuring(
                progress=progress or Progress(shown=False, title=work.title),
                interrupted=interrupted,
            ),
            until=None if time_limit_s is None else time.monotonic() + time_limit_s,
            warmed={} if warmed is None else warmed,
            apart=any(each is not None and each.ranks is not None for each in settings),
        )
        return turns.take(blocks)
    finally:
        mine.release()


@dataclass(kw_only=True)
class _Draft:
    """A trial that grows."""

    settings: Settings
    outcome: Outcome = "not_measured"
    reason: str | None = None
    blocks: list[FairBlock] = field(default_factory=list)
    warmup_ns: tuple[int, ...] = ()
    effective: dict[str, Any] = field(default_factory=dict)
    compilation: dict[str, Any] | None = None
    notes: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    warm_step_s: float = 0.0

    @property
    def open(self) -> bool:
        return self.outcome in {"measured", "not_measured"}

    def learn(self, about: About) -> None:
        self.effective = about.effective
        self.notes.update(dict.fromkeys(about.notes))
        self.warnings.update(dict.fromkeys(about.warnings))
        counted = about.compilation.to_json()
        if any(counted.values()):
            before = self.compilation or {}
            self.compilation = {name: before.get(name, 0) + n for name, n in counted.items()}

    def trial(self) -> Trial:
        return Trial(
            settings=self.settings,
            outcome=self.outcome,
            reason=self.reason,
            blocks=tuple(self.blocks),
            warmup_ns=self.warmup_ns,
            effective=self.effective,
            compilation=self.compilation,
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
        )


@dataclass(kw_only=True)
class _Turns:
    """The order of the blocks, and the time that each may take."""

    work: "Workload"
    drafts: list[_Draft]
    steps: int
    measuring: Measuring
    until: float | None
    warmed: MutableMapping[Settings, float]
    apart: bool = False
    """Whether every block is measured in processes of its own."""
    samples: float | None = None
    """Of a block, once the first setting has told."""
    whole: int = 1
    """Steps of an epoch, where blocks are made of whole ones."""
    notes: list[str] = field(default_factory=list)

    def take(self, rounds: int) -> FairRuns:
        began = time.monotonic()
        ended: Ended = "finished"
        self.measuring.progress.expect(len(self.drafts) * rounds * (self.steps + 1))
        try:
            for step in self._plan(rounds):
                step()
                if self.measuring.stopped:
                    ended = "interrupted"
                    break
                if self._left_s() == 0.0:
                    ended = "time_limit"
                    break
        except KeyboardInterrupt:
            ended = "interrupted"
        complete = all(len(d.blocks) == rounds for d in self.drafts if d.open)
        return FairRuns(
            trials=tuple(draft.trial() for draft in self.drafts),
            ended="finished" if complete else ended,
            elapsed_s=time.monotonic() - began,
            notes=tuple(self.notes),
        )

    def _plan(self, rounds: int) -> Iterator[Callable[[], None]]:
        """All that is to be done, in order: warm-up of every setting, then the turns."""
        for at, draft in enumerate(self.drafts):
            yield partial(self._guarded, draft, partial(self._warm_up, draft, self.drafts[at:]))
        self._lengthen()
        self._shorten(rounds)
        position = 0
        for round_ in range(rounds):
            for number in self._order(round_):
                draft = self.drafts[number]
                if draft.open:
                    yield partial(self._guarded, draft, partial(self._measure, draft, position))
                    position += 1

    def _order(self, round_: int) -> list[int]:
        """There and back, then the same from the next one on: nobody is always in the middle."""
        numbers = list(range(len(self.drafts)))
        first = round_ // 2 % len(numbers)
        numbers = numbers[first:] + numbers[:first]
        return numbers[::-1] if round_ % 2 else numbers

    def _left_s(self) -> float | None:
        return None if self.until is None else max(0.0, self.until - time.monotonic())

    def _guarded(self, draft: _Draft, act: Callable[[], None]) -> None:
        """What goes wrong is the result of its setting."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            if isinstance(error, TimeLimitError) and draft.blocks:
                return  # the time for everything is over; what was measured is good
            draft.outcome, draft.reason = outcome_of(error)
            if draft.outcome == "out_of_memory":
                held = what_held(error, self.work, draft.settings)
                draft.reason = f"{draft.reason}. {held}" if held else draft.reason

    def _warm_up(self, draft: _Draft, waiting: list[_Draft]) -> None:
        """What belongs to the process, once for each setting: equal settings share it."""
        if draft.settings in self.warmed:
            draft.warm_step_s = self.warmed[draft.settings]
            return
        left = self._left_s()
        limit = None if left is None else max(left, _LEAST_S) * max(_HALF, 1 / len(waiting))
        warm = fresh.warm_up if self.apart else warm_up
        draft.warmup_ns, about = warm(self.work, draft.settings, self.measuring, time_limit_s=limit)
        draft.learn(about)
        draft.warm_step_s = statistics.median(draft.warmup_ns[-STEADY:] or (0,)) / 1e9
        if not self.measuring.stopped:
            self.warmed[draft.settings] = draft.warm_step_s

    def _lengthen(self) -> None:
        """Whole epochs where workers live on between them under one setting and not another.

        What starting them costs is in the steps where an epoch begins; two of these in every
        block, so that neither is taken for warm-up.
        """
        known = [draft.effective for draft in self.drafts if draft.open]
        kept = {bool(each.get("persistent_workers")) for each in known if each.get("workers")}
        epochs = {each.get("batches_per_epoch") for each in known}
        epoch = epochs.pop() if len(epochs) == 1 else None
        if len(kept) < 2 or not epoch:
            return
        steps = max(_LEAST_EPOCHS, -(-self.steps // epoch)) * epoch
        if steps <= _MOST_LONGER * self.steps:
            self.steps, self.whole = steps, epoch
        elif epoch > self.steps:
            self.notes.append(
                f"an epoch has {epoch} batches, and a block of {self.steps} steps seldom holds the "
                "start of one: what persistent workers save there is not in these times. Ask for "
                f"steps={_LEAST_EPOCHS * epoch} to see it."
            )

    def _shorten(self, rounds: int) -> None:
        """Fewer steps a block where all of them would not fit into the time limit."""
        left, open_ = self._left_s(), [draft for draft in self.drafts if draft.open]
        step_s = sum(draft.warm_step_s * self._as_many(draft) for draft in open_) * rounds
        if left is None or step_s * (self.steps + 1) <= USABLE_TIME * left:
            return
        fits = max(LEAST_STEPS, int(USABLE_TIME * left / step_s) - 1)
        self.notes.append(
            f"blocks of {fits} steps instead of {self.steps}: more do not fit into time_limit_s"
        )
        self.steps = fits

    def _as_many(self, draft: _Draft) -> float:
        """Steps of a setting that make as many samples as one step of the first."""
        own, first = (each.effective.get("batch_size") for each in (draft, self.drafts[0]))
        return first / own if own and first else 1.0

    def _measure(self, draft: _Draft, position: int) -> None:
        left = self._left_s()
        shared: dict[str, Any] = {
            "position": position,
            "time_limit_s": None if left is None else max(left, _LEAST_S),
            "whole": self.whole,
        }
        if self.apart:
            known = draft.effective
            count = self._steps(known.get("batch_size"), known.get("workers") or 0)
            found = fresh.measure(self.work, draft.settings, self.measuring, count=count, **shared)
        else:
            found = measure(self.work, draft.settings, self.measuring, steps=self._steps, **shared)
        if found is None:
            return
        block, about = found
        draft.outcome = "measured"
        draft.blocks.append(block)
        draft.learn(about)
        if self.samples is None and draft is self.drafts[0]:
            each = [n for n in block.samples if n]
            self.samples = max(each) * self.steps if each else None

    def _steps(self, batch_size: float | None, workers: int) -> int:
        """Steps that make as many samples as a block of the first setting, in whole rounds."""
        steps = self.steps
        if self.samples is not None and batch_size:
            steps = round(self.samples / batch_size)
        return max(steps, LEAST_STEPS * max(workers, 1))


STEADY = 3
"""The last steps of warm-up, by which the blocks are planned."""
USABLE_TIME = 0.8
"""Share of the time left that the blocks may be planned to fill."""
_HALF = 0.5
"""Of the time left, what the very first steps of a setting may take: it may have to compile."""
_LEAST_EPOCHS = 2
_MOST_LONGER = 3
"""Own choice: blocks become at most so many times as long as was asked for."""
_LEAST_S = 0.01
"""A time limit of nothing is none."""


def _check(
    settings: Sequence[Settings | None], steps: int, blocks: int, time_limit_s: float | None
) -> None:
    for each in settings:
        if each is not None and not isinstance(each, Settings):
            raise SettingError(
                f"settings hold a {type(each).__name__}: give records such as "
                "wb.Settings(workers=2), or None for the loop as it is."
            )
    if not settings:
        raise SettingError("there is no setting to measure: give at least one.")
    for name, value, least in (("steps", steps, LEAST_STEPS), ("blocks", blocks, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SettingError(f"{name}={value!r} must be a whole number of at least {least}.")
    number = isinstance(time_limit_s, int | float) and not isinstance(time_limit_s, bool)
    if time_limit_s is not None and not (number and time_limit_s > 0):
        raise SettingError(
            f"time_limit_s={time_limit_s!r} must be a positive number of seconds, or None."
        )
