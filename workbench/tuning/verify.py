"""``wb.verify``: apply a finding's setting, measure under fair conditions, and say what to do."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import SettingError, TimeLimitError, WorkbenchError, WorkloadError
from workbench.findings import Finding
from workbench.profiling.profile import RUNS
from workbench.recording.progress import Progress
from workbench.settings import Record, Settings, check_records
from workbench.store.names import as_folder, safe_name
from workbench.store.writing import check_writable
from workbench.tuning.attempt import joined
from workbench.tuning.elsewhere import elsewhere
from workbench.tuning.fair import fair_blocks
from workbench.tuning.fresh import check_ranks, sharing_note
from workbench.tuning.keeping import keep, left_alone, profiled
from workbench.tuning.numbers import parity
from workbench.tuning.parity import Parity
from workbench.tuning.trial import FairRuns, losses_after_as_many
from workbench.tuning.verification import AFTER, BEFORE, Verification

if TYPE_CHECKING:
    from workbench.run.run import Run
    from workbench.workload import Workload

STEPS = 20
BLOCKS = 4
FAIR_SHARE = 0.7
"""Share of the time limit for the step times; numbers and profiles get what is left."""
_DEFAULT_RECORD = Record()


def verify(
    work: "Workload",
    finding_or_settings: Finding | Settings,
    *,
    before: Settings | None = None,
    steps: int = STEPS,
    blocks: int = BLOCKS,
    record: Record | None = _DEFAULT_RECORD,
    folder: str | Path | None = None,
    time_limit_s: float | None = 600,
    progress: bool = True,
    interrupted: Callable[[], bool] | None = None,
) -> Verification:
    """Measure what a setting does to this loop, and say whether to keep it.

    The loop without the setting, with it, and without it again take turns, block by block, each
    block from the same weights, random state and batches. The gain comes with its interval and is
    held against what the loop differs from itself; then the numbers of both are compared on the
    same batches, and a short window of each is profiled. Everything is as it was afterwards.

    Where one side needs several processes, every block of every side runs in fresh ones, which
    takes some seconds more for each.

    The default of 4 blocks of 20 steps finds a change of a tenth in more than 80 % of trials on a
    busy machine, where it is called by mistake in fewer than 5 %.

    Args:
        work: Model, data and step.
        finding_or_settings: A finding that has a setting, or the settings themselves.
        before: What it is compared with, and added to. Left out: for a finding the settings of the
            Run that it was found in, otherwise the loop as it is.
        steps: Steps that count in each block.
        blocks: Blocks of each side.
        record: What the profiler records in a window of each side; ``None`` profiles nothing.
        folder: Where the Runs and the verification are kept; ``runs`` when left out.
        time_limit_s: Seconds for everything.
        progress: Show a progress bar.
        interrupted: Is asked between steps; true acts as an interrupt.

    Raises:
        SettingError: The finding has no setting, or ranks that cannot be started here; the message
            says what to do.
        WorkloadError: The loop fails as it is.
        TimeLimitError: The time was over before anything was measured.
        KeyboardInterrupt: After an interrupt; what was measured until then is kept.
    """
    finding, changed = _asked(work, finding_or_settings, before, record)
    base = _base(finding) if before is None else before
    both = joined(base, changed)
    for side in (base, both):
        check_ranks(work, side)
    order = _Order(
        work=work,
        finding=finding,
        settings=changed,
        base=base,
        record=record,
        parent=as_folder(folder, RUNS),
        limit_s=time_limit_s,
    )
    if before is None and base.changes():
        order.notes.append(f"compared with the settings of the Run that it was found in: {base}")
    order.notes.extend(filter(None, [sharing_note(work, both) or sharing_note(work, base)]))
    check_writable(order.parent)
    with order.kept(), Progress(shown=progress, title=work.title) as bar:
        order.measure(steps, blocks, bar, interrupted)
    return order.verification()


@dataclass(kw_only=True)
class _Order:
    """What was asked for, and what is known so far."""

    work: "Workload"
    finding: Finding | None
    settings: Settings
    base: Settings
    record: Record | None
    parent: Path
    limit_s: float | None
    began: float = field(default_factory=time.monotonic)
    fair: FairRuns | None = None
    parity: Parity | None = None
    runs: "list[Run | None]" = field(default_factory=lambda: [None, None])
    notes: list[str] = field(default_factory=list)
    place: Path | None = None

    def measure(
        self, steps: int, blocks: int, bar: Progress, interrupted: Callable[[], bool] | None
    ) -> None:
        """Times, then numbers, then a profile of each side; each adds to what is known."""
        with_it = joined(self.base, self.settings)
        self.notes.extend(_left_out(self.base, self.settings, with_it))
        limit = None if self.limit_s is None else self.limit_s * FAIR_SHARE
        self.fair = fair_blocks(
            self.work,
            [self.base, with_it, self.base],
            steps=steps,
            blocks=blocks,
            time_limit_s=limit,
            progress=bar,
            interrupted=interrupted,
        )
        _check_base(self.fair)
        if self.fair.ended == "interrupted":
            raise KeyboardInterrupt
        if self.fair.ended == "time_limit":
            self.notes.append("not all blocks were measured: time_limit_s left too little time")
        if not self.fair.trials[AFTER].ok:
            return
        bar.stage("comparing numbers")
        with self._may_fail("the numbers were not compared"):
            self.parity = parity(
                self.work, with_it, before=self.base, time_limit_s=self._left_s(2), progress=bar
            )
        if interrupted is not None and interrupted():
            raise KeyboardInterrupt
        if self.record is None:
            return
        turns = secrets.token_hex(8)
        losses = losses_after_as_many(self.fair.trials[BEFORE], self.fair.trials[AFTER])
        for side, settings in enumerate((self.base, with_it)):
            bar.stage("profiling")
            with self._may_fail("a side was not profiled"):
                self.runs[side] = profiled(
                    self.work,
                    settings,
                    self.fair.trials[side],
                    record=self.record,
                    folder=self.parent,
                    time_limit_s=self._left_s(2 - side),
                    turns=turns,
                    loss=losses[side],
                )

    def verification(self) -> Verification:
        """What is known so far; only once something was measured."""
        if self.fair is None:
            raise AssertionError("nothing was measured")
        return Verification(
            settings=self.settings,
            base=self.base,
            finding=self.finding,
            fair=self.fair,
            parity=self.parity,
            before=self.runs[0],
            after=self.runs[1],
            folder=self.place,
            notes=tuple(self.notes),
            elsewhere=elsewhere(self.finding, self.fair.trials[BEFORE]),
        )

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Write what is known when the block ends, also by an interrupt; an error says where."""
        try:
            yield
        except BaseException as error:
            if self.fair is not None and self.fair.trials[BEFORE].blocks:
                self._write()
                if self.place is not None:
                    error.add_note(f"What was measured until then is kept in {self.place}.")
            raise
        self._write()

    def _write(self) -> None:
        from workbench.workload.interrupts import Deferred

        with Deferred(deaths=False):
            name = safe_name(f"{self.work.title}-{self.settings}")
            try:
                self.place = keep(self.parent, name, self.verification())
            except OSError as error:  # what was measured is worth more than its file
                self.notes.append(f"it could not be kept in {self.parent}: {error.strerror}")
            profiled_ones = [run for run in self.runs if run is not None]
            if len(profiled_ones) == 1:
                with suppress(OSError, WorkbenchError):
                    left_alone(profiled_ones[0], self.place)

    def _left_s(self, parts: int) -> float | None:
        """An even part of the time that is left."""
        if self.limit_s is None:
            return None
        return max((self.began + self.limit_s - time.monotonic()) / parts, 0.1)

    @contextmanager
    def _may_fail(self, what: str) -> Iterator[None]:
        """The step times are good without the rest: what fails is said."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            text = " ".join(str(error).split())[:300]
            kind = "" if isinstance(error, WorkbenchError) else f"{type(error).__name__}: "
            self.notes.append(f"{what}: {kind}{text}")


def _asked(work: Any, given: Any, before: Any, record: Any) -> tuple[Finding | None, Settings]:
    from workbench.workload import Workload

    if not isinstance(work, Workload):
        raise WorkloadError(
            f"wb.verify needs a Workload, not a {type(work).__name__}: "
            "wb.verify(wb.Workload(model, data, loss=..., optimizer=...), run.findings[0])."
        )
    check_records(before, Record() if record is None else record)
    if isinstance(given, Settings):
        finding, settings = None, given
    elif isinstance(given, Finding):
        finding, settings = given, _setting_of(given)
    else:
        raise SettingError(
            f"wb.verify needs a finding or Settings, not a {type(given).__name__}: "
            "wb.verify(work, run.findings[0]), or wb.verify(work, wb.Settings(workers=2))."
        )
    if not settings.changes():
        raise SettingError("the settings change nothing: set at least one field of wb.Settings.")
    return finding, settings


def _setting_of(finding: Finding) -> Settings:
    if not finding.setting:
        call = f" In torch: {finding.call}." if finding.call else ""
        raise SettingError(
            f"{finding.code} has no setting to switch, so nothing can be measured for you "
            "(run.findings.verifiable holds those that have one). By hand: "
            f"{finding.advice}{call} Then profile both ways and ask wb.compare(run, run2)."
        )
    return Settings.from_json(dict(finding.setting))


def _base(finding: Finding | None) -> Settings:
    """What the loop of the finding ran with: its setting is a change of that."""
    origin = None if finding is None else finding.origin
    return Settings.from_json(dict((origin.settings if origin else None) or {}))


def _left_out(base: Settings, change: Settings, both: Settings) -> Iterator[str]:
    """What the change leaves nothing to act on."""
    for name, value in base.changes().items():
        if name not in change.changes() and name not in both.changes():
            yield f"{name}={value} contradicts {change} and was left out with it"


def _check_base(fair: FairRuns) -> None:
    """The loop as it is must have run, or there is nothing to compare with."""
    trial = fair.trials[BEFORE]
    if trial.blocks or fair.ended == "interrupted":
        return
    if trial.outcome in {"timed_out", "not_measured"}:
        raise TimeLimitError(
            "time_limit_s was over before the loop had been measured once as it is: raise it, or "
            f"ask for fewer steps. {trial.reason or ''}".strip()
        )
    under = "" if not trial.settings.changes() else f" (with {trial.settings}, see before=)"
    raise WorkloadError(f"the loop fails without the setting{under}: {trial.reason}")
