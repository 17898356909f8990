"""The thread that trains: steps, and between two of them whatever was asked for."""

import atexit
import gc
import os
import threading
import time
import traceback
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import torch

from workbench.errors import SettingError, WorkbenchError
from workbench.profiling.memory import is_out_of_memory
from workbench.recording.ownership import Ownership, claim
from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_meter import Meter, StepFacts, meter_for
from workbench.recording.telemetry_system import TelemetrySampler
from workbench.session.burst import Burst
from workbench.session.bursting import Recorder
from workbench.session.effects import ChangeRow
from workbench.session.listeners import Listeners
from workbench.session.own_step import watch_own_step
from workbench.session.records import Status
from workbench.session.stopping import COMPARING, LOADING, TRAINING, Ended
from workbench.session.thread_state import ThreadState
from workbench.session.trial import Trial
from workbench.session.watching import Watcher
from workbench.settings import Record, Settings
from workbench.workload import Workload
from workbench.workload.applying import run_device
from workbench.workload.async_exceptions import Stages
from workbench.workload.feed import Feed
from workbench.workload.placement import samples_in, settle_optimizers, start_device
from workbench.workload.snapshot import Snapshot
from workbench.workload.stretch import Stretch
from workbench.workload.switches.reach import training_parts
from workbench.workload.training import Training

WHAT = "a session"
PROVEN = 20
"""After so many steps an error is no longer blamed on the settings; running out of memory is."""
RESTARTS_MOST = 3
"""So often the loader's workers are started again when they die between two good steps."""


class Engine:
    """What a session drives; the session itself may be forgotten while this still runs."""

    def __init__(self, work: Workload, settings: Settings, record: Record, folder: Path) -> None:
        self.work = work
        self.folder = folder
        self.settings = settings
        self.telemetry = Telemetry()
        self.listeners = Listeners()
        self.rows: list[ChangeRow] = []
        self.bursts: list[Burst] = []
        self.trial: Trial | None = None
        self.status: Status = "ready"
        self.doing = "Nothing has begun."
        self.error: str | None = None
        self.remedy: str | None = None
        self.notes: tuple[str, ...] = ()
        self.step = 0
        self.pending: Settings | None = None
        self.watcher = Watcher()
        self.recorder = Recorder(work, record, folder, self.telemetry)
        self.code = Stages(Ended)
        self._asked_ns = 0
        self._history: list[Settings] = []
        self._undoing = False
        self._lock = threading.Condition()
        self._running = False
        self._single = 0
        self._ending = False
        self._keep = False
        self._waiting: deque[Trial] = deque()
        self._thread: threading.Thread | None = None
        self._owner: Ownership | None = None
        self._feed: Feed | None = None
        self._stretch: Stretch | None = None
        self._meter: Meter | None = None
        self._meters: dict[str, Meter] = {}
        self._sampler: TelemetrySampler | None = None
        self._hooks = ExitStack()
        self._blamed: ChangeRow | None = None
        self._restarts = 0
        self._steps_ns = 0
        self._process = os.getpid()
        self._sampled_ns = 0

    # From any thread

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def epoch(self) -> int:
        """Epochs that were read to their end."""
        feed = self._feed
        return self._epochs if feed is None else feed.epochs

    _epochs = 0

    def overhead_ratio(self) -> float | None:
        """Step time with telemetry over step time without it."""
        sampler = self._sampler
        cost = sum(meter.cost_ns for meter in self._meters.values())
        cost += self._sampled_ns + (0 if sampler is None else sampler.cost_ns)
        total = self._steps_ns
        return None if total <= 0 or cost >= total else total / (total - cost)

    def start(self, *, running: bool, single: int = 0) -> None:
        """Begin or go on; ``single`` steps and then a pause where it is not ``running``.

        Raises:
            ProfilerBusyError: Something else profiles or trains under us in this process.
        """
        with self._lock:
            if self.alive:
                self._running = running
                self._single += single
                if self.status == "failed":
                    self.error = self.remedy = None
                    self.status, self.doing = "running", "Going on."
                self._lock.notify_all()
                return
            self._ending = self._keep = False
            self._process = os.getpid()
            self._running, self._single = running, single
            state = ThreadState()
            self._owner = claim(WHAT)
            thread = threading.Thread(
                target=self._main, args=(state,), name="workbench-session", daemon=True
            )
            self._owner.thread = self._thread = thread
            self.status, self.doing = "running", "Getting ready."
            self.error = self.remedy = None
            atexit.register(self._at_exit)
            try:
                thread.start()
            except BaseException:
                self._owner.release()
                self._thread = None
                self.status = "ready"
                raise

    def pause(self) -> None:
        """Wait after the step of now."""
        with self._lock:
            self._running, self._single = False, 0
            self._lock.notify_all()

    def end(self, *, keep: bool, timeout_s: float) -> bool:
        """End the training; tells whether its thread is gone."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return True
        with self._lock:
            if not self._ending:
                self._ending, self._keep = True, keep
                self.status, self.doing = "stopping", "The session is stopping."
            self._lock.notify_all()
        if threading.current_thread() is thread:
            return False
        if self.trial is not None:
            self.trial.cancel()
        until = time.monotonic() + timeout_s
        # A step that is broken off half-way must not be in weights that are kept.
        thread.join(timeout_s * (0.8 if keep else 0.25))
        while thread.is_alive() and time.monotonic() < until:
            feed = self._feed
            if self.code.name == LOADING and feed is not None:
                for worker in feed.workers():
                    with suppress(OSError, ValueError, AttributeError):
                        worker.terminate()
            self.code.send()
            thread.join(0.25)
        return not thread.is_alive()

    def ask(self, settings: Settings, *, undoing: bool = False) -> None:
        """These settings from the next step on."""
        with self._lock:
            self.pending, self._asked_ns, self._undoing = settings, time.monotonic_ns(), undoing
            if not self.alive:
                self.settings, self.pending = settings, None
            self._lock.notify_all()
        self.listeners.tell("state")

    def undo(self) -> bool:
        """Back to before the last change; tells whether there was one."""
        with self._lock:
            if self.pending is not None:
                self.pending = None
                return True
            if not self._history:
                return False
            before = self._history.pop()
        self.ask(before, undoing=True)
        return True

    def ask_burst(self, steps: int, reason: str) -> Burst:
        """A burst from the next step on."""
        burst = Burst(number=len(self.bursts) + 1, steps=steps, reason=reason)
        with self._lock:
            self.bursts.append(burst)
            self._lock.notify_all()
        self.listeners.tell("burst")
        return burst

    def ask_trial(self, trial: Trial) -> None:
        """A comparison before the next step."""
        with self._lock:
            self.trial = trial
            self._waiting.append(trial)
            self._lock.notify_all()
        self.listeners.tell("trial")

    def wait_until(self, done: Any, timeout_s: float | None) -> bool:
        """Wait until ``done()`` or the end of the training."""
        with self._lock:
            self._lock.wait_for(lambda: done() or not self.alive, timeout_s)
        return bool(done())

    # On the thread that trains

    def _main(self, state: ThreadState) -> None:
        self.code.bind()
        status: Status = "stopped"
        try:
            with state.here():
                self._live()
        except Ended:
            pass
        except BaseException as error:  # noqa: BLE001 - the end of the thread: it is shown
            self._tell_error(error)
            status = "failed"
        self._wind_up(status)

    def _live(self) -> None:
        work = self.work
        start_device(run_device(work, self.settings))
        snapshot = Snapshot(
            (work.model, work.loss, work.optimizer, work.scheduler, work.step), (work.data,)
        )
        try:
            self._feed = Feed(work)
            self._enter(self.settings)
            self._start_sampler()
            self._loop()
        finally:
            self._close(snapshot)

    def _close(self, snapshot: Snapshot) -> None:
        feed, sampler = self._feed, self._sampler
        try:
            if sampler is not None:
                sampler.stop()
                self._sampled_ns += sampler.cost_ns
        finally:
            self._sampler = None
            try:
                self._leave()
                if feed is not None:
                    self._epochs += feed.epochs
                    feed.close()
            finally:
                self._feed = None
                snapshot.restore(keep_training=self._keep)
                if self._keep:
                    settle_optimizers(training_parts(self.work)[1])

    def _wind_up(self, status: Status) -> None:
        self.recorder.stop()
        for burst in self.bursts:
            burst.end("failed", "the session ended before it was recorded")
        for trial in self._waiting:
            trial.end("cancelled", "the session ended before it began")
        self._waiting.clear()
        self._meter, self._meters = None, {}
        atexit.unregister(self._at_exit)
        if self._owner is not None:
            self._owner.release()
        kept = "The trained weights were kept." if self._keep else "Everything is as it was before."
        with self._lock:
            self.status, self.pending = status, None
            self.doing = f"The session has ended. {kept}"
            self._lock.notify_all()
        self.listeners.tell("state")

    def _loop(self) -> None:
        while self._boundary():
            burst = next((b for b in self.bursts if b.status == "waiting"), None)
            if burst is not None and self._running:
                self._record(burst)
            else:
                if self._one_step():
                    self._single = max(self._single - 1, 0)
                self._look()

    def _boundary(self) -> bool:
        """Do what was asked for, wait while nothing is wanted; false at the end."""
        while not self._ending:
            if self.pending is not None:
                self._change()
            elif self._waiting:
                self._compare(self._waiting.popleft())
            elif self._running or self._single:
                self._say("running", "Training.")
                return True
            else:
                self._rest()
        return False

    def _rest(self) -> None:
        if self._meter is not None:
            self._meter.restart()
        if self.status != "failed":
            self._say("paused", f"Paused after {self.step} steps.")
        with self._lock:
            self._lock.wait_for(self._is_wanted, 1.0)

    def _is_wanted(self) -> bool:
        return bool(self._ending or self.pending is not None or self._waiting) or bool(
            self._running or self._single
        )

    def _one_step(self, *, profiled: bool = False) -> bool:
        meter, feed, stretch = self._meter, self._feed, self._stretch
        if meter is None or feed is None or stretch is None:
            raise AssertionError("a step needs a stretch of training")
        began = time.perf_counter_ns()
        meter.begin_input()
        try:
            with self.code.stage(LOADING):
                held = [feed.take()]
            meter.end_input()
            with self.code.stage(TRAINING):
                samples = samples_in(held[0])
                loss = stretch.training.step(held.pop())
        except Exception as error:  # noqa: BLE001 - of the user's code, and shown
            self._step_failed(error)
            return False
        feed.done()
        number = 0 if self._blamed_or_last is None else self._blamed_or_last.number
        facts = StepFacts(
            step=self.step, epoch=feed.epochs, change=number, profiled=profiled, samples=samples
        )
        meter.end_step(facts, loss)
        self._restarts = 0
        self._steps_ns += time.perf_counter_ns() - began
        self.step += 1
        if self._lock._waiters:  # type: ignore[attr-defined]  # somebody counts steps
            with self._lock:
                self._lock.notify_all()
        return True

    @property
    def _blamed_or_last(self) -> ChangeRow | None:
        return next((row for row in reversed(self.rows) if row.applied_ns is not None), None)

    def _look(self) -> None:
        """Whether telemetry, or the clock, wants a burst."""
        if any(not burst.over for burst in self.bursts[-1:]):
            return
        reason = self.watcher.look(self.telemetry, self.step)
        if reason is not None:
            self.ask_burst(10, reason)

    def _enter(self, settings: Settings) -> None:
        feed = self._feed
        if feed is None:
            raise AssertionError("there is no feed")
        self._stretch = Stretch(self.work, settings, feed)
        training: Training = self._stretch.training
        key = str(training.device)
        if key not in self._meters:
            self._meters[key] = meter_for(training.device, self.telemetry)
        self._meter = training.control.watch = self._meters[key]
        self._meter.restart()
        self._hooks = watch_own_step(self.work, settings, self._meter)
        self.settings = settings
        self.notes = tuple(training.notes)
        self.effective = training.effective

    effective: dict[str, Any] = {}  # noqa: RUF012 - replaced, never changed

    def _leave(self) -> None:
        stretch, self._stretch = self._stretch, None
        self._hooks.close()
        if self._meter is not None:
            with suppress(RuntimeError):  # a device that has failed has no times to give
                self._meter.restart()
        if stretch is not None:
            stretch.training.control.watch = None
            stretch.end()

    def _change(self) -> None:
        with self._lock:
            after, self.pending = self.pending, None
            undoing, asked = self._undoing, self._asked_ns
        before = self.settings
        if after is None or after == before:
            return
        row = ChangeRow(
            number=len(self.rows) + 1, asked_ns=asked, step=self.step, before=before, after=after
        )
        self._say(self.status, f"Switching to {after}.")
        try:
            with self.code.stage(TRAINING):
                self._leave()
                self._enter(after)
        except Exception as error:  # noqa: BLE001 - a setting that cannot act is told
            text, remedy = _told(error)
            _forget(error)
            row.error = f"{text} In force is again: {before}."
            self.error, self.remedy = row.error, remedy
            self._leave()
            self._enter(before)
        else:
            row.applied_ns = time.monotonic_ns()
            row.note = None if self._stretch is None else self._stretch.lost
            self._blamed = row
            self.error = self.remedy = None
            if not undoing:
                self._history.append(before)
        self.rows.append(row)
        self.listeners.tell("change")
        self._say("running" if self._running else "paused", f"In force: {self.settings}.")

    def _step_failed(self, error: Exception) -> None:
        text, remedy = _told(error)
        memory = is_out_of_memory(error)
        _forget(error)
        del error
        row, feed = self._blamed, self._feed
        if feed is None:
            raise AssertionError("there is no feed")
        if row is not None and (memory or self.step - row.step < PROVEN):
            feed.again()
            self._leave()
            self._drop_gradients()
            row.error = f"{text} Back to: {row.before}."
            self._blamed = None
            if self._history and self._history[-1] == row.before:
                self._history.pop()
            self._enter(row.before)
            self.rows.append(
                ChangeRow(
                    number=len(self.rows) + 1,
                    asked_ns=time.monotonic_ns(),
                    applied_ns=time.monotonic_ns(),
                    step=self.step,
                    before=row.after,
                    after=row.before,
                    note="put back by itself",
                )
            )
            self.error, self.remedy = row.error, remedy
            self.listeners.tell("change")
            self.listeners.tell("error")
            return
        if "worker of the loader" in text and self._restarts < RESTARTS_MOST:
            self._restarts += 1
            feed.restart()
            self._restart_meter()
            self.error, self.remedy = f"{text} Its workers were started again.", remedy
            self.listeners.tell("error")
            return
        feed.done()
        feed.restart()
        if memory:
            self._drop_gradients()
        self._restart_meter()
        self._running, self._single = False, 0
        self.error, self.remedy = text, remedy
        self._say("failed", f"An error ended step {self.step}: training waits.")
        self.listeners.tell("error")

    def _restart_meter(self) -> None:
        if self._meter is not None:
            with suppress(RuntimeError):
                self._meter.restart()

    def _drop_gradients(self) -> None:
        """Free what a step that ran out of memory has left behind."""
        if self.work.step is None:
            for optimizer in self.work.optimizers:
                optimizer.zero_grad(set_to_none=True)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _compare(self, trial: Trial) -> None:
        from workbench.tuning import verify

        if trial.cancelled:
            trial.end("cancelled")
            return
        if self._owner is None:
            raise AssertionError("the session has no right to profile")
        trial.status = "running"
        self._say("busy", f"Comparing {trial!r} with the settings in force; training waits.")
        self.listeners.tell("trial")
        try:
            self._leave()
            with self._owner.lent(), self.code.stage(COMPARING):
                trial.verification = verify(
                    self.work,
                    trial.asked,
                    before=self.settings,
                    folder=self.folder,
                    progress=False,
                    interrupted=lambda: trial.cancelled or self._ending,
                    **trial.options,
                )
        except KeyboardInterrupt:
            trial.end("cancelled")
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            trial.end("failed", _told(error)[0])
            _forget(error)
        except BaseException:
            trial.end("cancelled", "the session ended")
            raise
        else:
            trial.end("done")
        self._enter(self.settings)
        self.listeners.tell("trial")

    def _record(self, burst: Burst) -> None:
        stretch = self._stretch
        if stretch is None:
            raise AssertionError("a burst needs a stretch of training")
        burst.step, burst.status = self.step, "recording"
        self._say("running", f"Recording {burst.steps} steps under the profiler.")
        self.listeners.tell("burst")
        self._restart_meter()
        try:
            self.recorder.record(
                burst,
                stretch.training,
                self.settings,
                step=lambda: self._one_step(profiled=True) and not self._ending,
                first=self.step,
                tell=lambda: self.listeners.tell("burst"),
            )
        except Exception as error:  # noqa: BLE001 - the training goes on without the burst
            burst.end("failed", _told(error)[0])
            _forget(error)
        self._restart_meter()
        if self.status == "running":
            self._say("running", "Training.")
        self.listeners.tell("burst")

    def _start_sampler(self) -> None:
        def device() -> Any:
            stretch = self._stretch
            return None if stretch is None else stretch.training.device

        def waiting() -> int | None:
            feed = self._feed
            return None if feed is None else feed.waiting()

        def workers() -> int:
            feed = self._feed
            return 0 if feed is None else len(feed.workers())

        self._sampler = TelemetrySampler(
            self.telemetry, waiting=waiting, workers=workers, device=device
        )
        self._sampler.start()

    def _say(self, status: Status, doing: str) -> None:
        if self._ending:
            return
        changed = (self.status, self.doing) != (status, doing)
        self.status, self.doing = status, doing
        if changed:
            with self._lock:
                self._lock.notify_all()
            self.listeners.tell("state")

    def _tell_error(self, error: BaseException) -> None:
        self.error, self.remedy = _told(error)
        _forget(error)
        self.listeners.tell("error")

    def _at_exit(self) -> None:
        if os.getpid() == self._process:  # not in a forked child
            self.end(keep=False, timeout_s=5.0)


def _told(error: BaseException) -> tuple[str, str]:
    """What happened and what to do, as text: the error itself holds frames, batches, graphs."""
    text = " ".join(str(error).split())[:500] or type(error).__name__
    if is_out_of_memory(error):
        said = text if text.endswith(".") else f"{text}."
        return (
            f"Memory ran out: {said}",
            "Use a smaller batch_size, accumulation, checkpointing or a lower precision.",
        )
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    if isinstance(error, SettingError):
        return ended, "Leave the setting out, or choose another value."
    if isinstance(error, WorkbenchError):
        return ended, "Do what the message says, then start again."
    return (
        f"{type(error).__name__}: {ended}",
        "Look at the step and its batch by hand; start() goes on with the next batch.",
    )


def _forget(error: BaseException) -> None:
    """Let go of what the frames of an error hold."""
    seen: BaseException | None = error
    while seen is not None:
        with suppress(RuntimeError):
            traceback.clear_frames(seen.__traceback__)
        seen.__traceback__ = None
        seen = seen.__cause__ or seen.__context__
