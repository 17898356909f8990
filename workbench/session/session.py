"""A live training session: start, pause, switch, look closer, compare, stop."""

import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from workbench.errors import SettingError, TimeLimitError, WorkloadError
from workbench.recording.telemetry import Telemetry
from workbench.session.burst import MOST_STEPS, Burst
from workbench.session.engine import Engine
from workbench.session.handover import rank_offers
from workbench.session.records import Change, State
from workbench.session.trial import Trial
from workbench.settings import Record, Settings, check_records
from workbench.store.names import as_folder
from workbench.units import time_text
from workbench.workload import Workload
from workbench.workload.capability import Offer, offers
from workbench.workload.interrupts import Deferred

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.run.source import Runs

RUNS = "runs"
_DEFAULT_RECORD = Record()
_RATE_STEPS = 50


class Session:
    """Trains a workload in a thread of its own while settings are switched between its steps.

    Nothing runs before :meth:`start`. A session that nobody holds any more stops by itself and
    puts everything back; so does the end of the interpreter, and leaving a ``with`` block. Every
    method may be called from any thread.

    Args:
        work: Model, data and step.
        settings: What is in force at first; the loop as it is when left out.
        record: What bursts record.
        folder: Where Runs of bursts and comparisons are kept; ``runs`` when left out.
        name: Beginning of their names; the workload's when left out.

    Raises:
        SettingError: ``settings`` or ``record`` only look like such records.
        WorkloadError: ``work`` is no Workload.
    """

    def __init__(
        self,
        work: Workload,
        settings: Settings | None = None,
        *,
        record: Record = _DEFAULT_RECORD,
        folder: str | Path | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(work, Workload):
            raise WorkloadError(
                f"a session needs a Workload, not a {type(work).__name__}: "
                "Session(wb.Workload(model, data, loss=..., optimizer=...))."
            )
        check_records(settings, record)
        self.work = work
        self._engine = Engine(work, settings or Settings(), record, as_folder(folder, RUNS), name)
        self._finalizer = weakref.finalize(self, _abandon, self._engine)

    def start(self) -> None:
        """Begin to train, or go on after a pause or an error; returns at once.

        Raises:
            ProfilerBusyError: Another session, ``wb.profile`` or a torch profiler runs here.
        """
        with Deferred():
            self._engine.start(running=True)

    def resume(self) -> None:
        """Go on after a pause; the same as :meth:`start`."""
        self.start()

    def pause(self) -> None:
        """Wait after the step that runs now."""
        self._engine.orders.pause()

    def step_once(self) -> None:
        """Train one step and wait then."""
        with Deferred():
            self._engine.start(running=False, single=1)

    def stop(self, keep: bool = False, timeout_s: float = 10.0) -> None:
        """End the session; doing it twice is fine.

        From a function that listens, which the training thread calls, it ends after that call.

        Args:
            keep: Leave the trained weights, optimizer and scheduler. Otherwise model, optimizer,
                random states and loader are as they were before, bit for bit.
            timeout_s: Seconds after which the caller waits no longer for code that hangs.

        Raises:
            TimeLimitError: The step or the loader hangs and cannot be broken off. The thread ends,
                and puts everything back, when that call returns.
        """
        with Deferred(deaths=False):
            gone = self._engine.end(keep=bool(keep), timeout_s=timeout_s)
        if not gone and self._engine.alive and not self._engine.is_here:
            what = self._engine.live.code.name or "putting everything back"
            raise TimeLimitError(
                f"the session did not end within {timeout_s:g} s: it is still {what}. It ends and "
                "puts everything back when that returns; if it never does, restart the kernel."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def wait(self, steps: int | None = None, timeout_s: float | None = None) -> bool:
        """Wait until so many more steps were trained, or (``None``) until the training ends.

        Returns:
            Whether that came to be: not when time ran out, or training ended or failed before.
        """
        engine = self._engine
        if steps is None:
            return engine.wait_until(lambda: not engine.alive, timeout_s)
        board = engine.board
        until = board.step + steps
        engine.wait_until(lambda: board.step >= until or board.status == "failed", timeout_s)
        return board.step >= until

    def apply(self, settings: Settings) -> None:
        """Change what ``settings`` set, from the next step on; other fields stay as they are.

        Whether it could act is told by :attr:`changes`; a setting that cannot act, or runs out of
        memory, leaves the last good ones in force.
        """
        check_records(settings, _DEFAULT_RECORD)
        engine = self._engine
        base = engine.orders.pending or engine.board.settings
        self.replace(Settings(**{**base.changes(), **settings.changes()}))

    def replace(self, settings: Settings) -> None:
        """Exactly these settings from the next step on; ``Settings()`` is the loop as it is."""
        check_records(settings, _DEFAULT_RECORD)
        self._engine.ask(settings)

    def undo(self) -> bool:
        """Back to the settings before the last applied change; tells whether there was one."""
        return self._engine.undo()

    def burst(self, steps: int = 10) -> Burst:
        """Record the next steps under torch.profiler; they become a Run on disk.

        Raises:
            SettingError: ``steps`` is not between 1 and 20.
        """
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MOST_STEPS:
            raise SettingError(f"steps={steps!r} must be a whole number from 1 to {MOST_STEPS}.")
        return self._engine.orders.ask_burst(steps, "asked for")

    @property
    def watch_changes(self) -> bool:
        """Whether a change of the step time that telemetry sees asks for a burst."""
        return self._engine.watcher.changes

    @watch_changes.setter
    def watch_changes(self, on: bool) -> None:
        self._engine.watcher.changes = bool(on)

    @property
    def burst_every_s(self) -> float | None:
        """Seconds between bursts by the clock; ``None``: none."""
        return self._engine.watcher.every_s

    @burst_every_s.setter
    def burst_every_s(self, seconds: float | None) -> None:
        if seconds is not None and not seconds > 0:
            raise SettingError(f"burst_every_s={seconds!r} must be a positive number, or None.")
        self._engine.watcher.every_s = seconds

    def verify(
        self,
        finding_or_settings: "Finding | Settings",
        *,
        steps: int = 20,
        blocks: int = 4,
        time_limit_s: float = 300.0,
        record: Record | None = _DEFAULT_RECORD,
    ) -> Trial:
        """Measure under fair conditions what a setting does; training waits and then goes on.

        It is compared with the settings in force, from the weights of now, which are put back.
        """
        trial = Trial(finding_or_settings)
        trial.options = {
            "steps": steps,
            "blocks": blocks,
            "time_limit_s": time_limit_s,
            "record": record,
        }
        if not self._engine.alive:
            trial.end("failed", "the session does not run: start it first.")
            return trial
        self._engine.orders.ask_trial(trial)
        return trial

    @property
    def state(self) -> State:
        """What the session is doing now; cheap."""
        engine, board, orders = self._engine, self._engine.board, self._engine.orders
        return State(
            status=board.status,
            doing=board.doing,
            error=board.error or board.listeners.failed,
            remedy=board.remedy,
            settings=board.settings,
            pending=orders.pending,
            step=board.step,
            epoch=engine.live.course.epochs,
            samples_per_s=self._samples_per_s(),
            overhead_ratio=engine.overhead_ratio(),
            bursts=orders.bursts,
            trial=orders.trial,
            notes=(*board.notes, *map(_lane, range(len(self.ranks)), self.ranks)),
        )

    def _samples_per_s(self) -> float | None:
        if self._engine.board.status != "running":
            return None
        return rate(self._engine.telemetry.last(_RATE_STEPS))

    @property
    def telemetry(self) -> Telemetry:
        """The last 10,000 steps and samples of the system."""
        return self._engine.telemetry

    @property
    def effective(self) -> dict[str, Any]:
        """What is in force by name, also where no setting asked for it; empty before the start."""
        return dict(self._engine.board.effective)

    @property
    def ranks(self) -> tuple[dict[str, float | None], ...]:
        """Times of the last step of each rank, by the names of telemetry's columns.

        Empty where this process trains; ``None`` in it was not measured.
        """
        return self._engine.live.course.lanes()

    @property
    def changes(self) -> tuple[Change, ...]:
        """The newest 1,000 changes of settings, oldest first; :attr:`changes_dropped` are gone.

        The change that brought the settings in force is always among them.
        """
        rows = self._engine.board.rows
        known, found, until = self._engine.telemetry, list[Change](), None
        for row in reversed(rows):
            found.append(row.record(known, until))
            until = until if row.applied_ns is None else row.step
        return tuple(reversed(found))

    @property
    def changes_dropped(self) -> int:
        """How many older changes are no longer told of; the numbers of the others go on."""
        rows = self._engine.board.rows
        return rows[-1].number - len(rows) if rows else 0

    def offers(self) -> tuple[Offer, ...]:
        """What every switch could do on this workload and machine."""
        alone = tuple(o for o in offers(self.work) if not (o.field == "parallel" and _ranks(o)))
        return (*alone, *rank_offers(self.work))

    def history(self) -> "Runs":
        """The Runs in this session's folder."""
        from workbench.run.source import runs

        return runs(self._engine.live.folder)

    def listen(self, callback: Callable[[str], Any]) -> Callable[[], None]:
        """Call ``callback(kind)`` when something happens; returns what ends that.

        It is called on the thread that trains, so it must be short. Kinds are ``state``,
        ``change``, ``burst``, ``trial`` and ``error``. A bound method is held weakly.
        """
        return self._engine.board.listeners.add(callback)

    def __repr__(self) -> str:
        state = self.state
        return f"Session({self.work.title}, {state.status}, step {state.step}: {state.doing})"


def _lane(number: int, times: Mapping[str, float | None]) -> str:
    """What the last step of a rank took, a sentence."""
    step, waited = times["step_ns"], times["input_ns"]
    waits = "" if waited is None else f", of which {time_text(waited)} waits for data"
    return f"rank {number}: the last step took {time_text(step)}{waits}"


def _ranks(offer: Offer) -> bool:
    return any(Settings(parallel=value).ranks is not None for value in offer.values)


def rate(steps: Mapping[str, Any]) -> float | None:
    """Samples a second over the steps under the last one's settings, without those profiled.

    It is the time of the steps themselves: a pause or a comparison between two of them is in none.
    """
    if not len(steps["step_ns"]):
        return None
    mine = (steps["change"] == steps["change"][-1]) & ~steps["profiled"]
    took, samples = (float(np.nansum(steps[name][mine])) for name in ("step_ns", "samples"))
    return samples / took * 1e9 if took > 0 and samples > 0 else None


def _abandon(engine: Engine) -> None:
    """End the training of a session that nobody holds; called wherever Python lets it go."""
    if engine.alive:
        engine.end(keep=False, timeout_s=0.0 if engine.is_here else 5.0)
