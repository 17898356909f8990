"""``wb.capture``: the same measurement around a loop that exists already."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from workbench.errors import ProfilerBusyError, RunError, SettingError, WorkbenchError
from workbench.profiling.active import Active
from workbench.profiling.phases import CapturePlan
from workbench.profiling.rank_folder import checked_ranks, folder_of, moved_text, rank_of_job
from workbench.profiling.results import explain_nothing, gather
from workbench.profiling.seen_step import SeenStep
from workbench.profiling.watch import Watched, describe, known_length
from workbench.profiling.writing import write_run
from workbench.recording.ownership import claim, refuse_unfinished_start
from workbench.recording.window import warm_up
from workbench.settings import Record, check_records
from workbench.store.names import as_folder
from workbench.store.writing import check_writable

if TYPE_CHECKING:
    from workbench.run.run import Run

Batch = TypeVar("Batch")

_DEFAULT_RECORD = Record()


def capture(
    folder: str | Path | None = None,
    *,
    record: Record = _DEFAULT_RECORD,
    warmup: int = 2,
    steps: int = 10,
    ranks: Sequence[int] | None = None,
) -> "Capture":
    """Record a window of your own training loop: nothing in it is rewritten.

    ::

        with wb.capture("runs/mine") as cap:
            for batch in cap.watch(loader):
                train(batch)
                cap.step()
        cap.run.findings

    After ``warmup`` steps a window of ``steps`` is profiled. Steps after the window are measured
    without the profiler, for as long as the loop goes on: they are the step time of record.

    Args:
        folder: The Run's folder, ``runs/capture`` when left out. One that exists already is left
            alone: the Run goes to a numbered one beside it, ``cap.folder`` says which. For a
            place without a name of its own, such as ``.``, it goes into that place.
        record: What the profiler records beside operators and kernels.
        warmup: Steps before the window, at least 1: the first ones carry one-time costs.
        steps: Steps in the window; fewer when their trace would become too large.
        ranks: In a job that torchrun, srun or mpirun launched, the ranks that record; all of them
            when left out. Each writes ``folder/rank<N>``, and ``wb.open(folder)`` is one Run.
    """
    return Capture(folder, record=record, warmup=warmup, steps=steps, ranks=ranks)


class Capture:
    """A recording around the user's own loop; made by :func:`capture`.

    ``folder`` is where the Run was written, ``notes`` what should be said about it.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        record: Record = _DEFAULT_RECORD,
        warmup: int = 2,
        steps: int = 10,
        gives_way: bool = False,
        ranks: Sequence[int] | None = None,
    ) -> None:
        check_records(None, record)
        for name, value in (("warmup", warmup), ("steps", steps)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingError(f"{name}={value!r} must be a whole number of at least 1.")
        self.folder: Path | None = None
        self.notes: list[str] = []
        target = as_folder(folder, "runs/capture")
        self._target = target if target.name not in ("", "..") else target / "capture"
        self._base = Path()
        self._rank = rank_of_job()
        self._chosen = checked_ranks(ranks)
        self._passes = False
        self._plan = CapturePlan(warmup=warmup, steps=steps)
        self._record = record
        self._gives_way = gives_way
        self._active: Active | None = None
        self._used = False
        self._problem: WorkbenchError | None = None
        self._run: Run | None = None
        self._listeners: list[Callable[[SeenStep], object]] = []
        self._let_go_ns: int | None = None

    def listen(self, callback: Callable[[SeenStep], object]) -> Callable[[], None]:
        """Tell every completed step.

        The callback runs between two steps of the loop, so it must be short; one that fails is not
        called again, and the loop goes on. What is returned ends the telling.
        """
        self._listeners.append(callback)

        def unlisten() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return unlisten

    def __enter__(self) -> Self:
        from workbench.workload.interrupts import Deferred

        if self._used:
            raise RunError("a capture is used once: call wb.capture(...) again for another one.")
        if self._is_left_out():
            self._used = self._passes = True
            return self
        check_writable(self._target.parent)
        self._base = Path.cwd()  # the loop may change to another folder
        refuse_unfinished_start()
        owner = claim(
            "wb.capture", give_way=self.abandon if self._gives_way else None, end=self.abandon
        )
        self._used = True
        try:
            warm_up()
            with Deferred():
                self._active = Active(owner, self._plan, self._record)
        except BaseException:
            self._close(None)
            owner.release()  # a traceback may keep it alive for long
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._passes:
            self._passes = False
        elif self._active is not None and self._active.is_copy():
            self._drop(self._active)
        elif not self.is_elsewhere():
            self._close(error)
        elif error is None:
            raise RunError(
                "the capture was left on another thread than it was entered on, and only there can "
                "torch's profiler be stopped: leave it on the thread that runs the loop."
            )

    def __repr__(self) -> str:
        if self._active is not None:
            return f"<capture, running; its Run goes to {self._target} or beside it>"
        if self.folder is None:
            return f"<capture, nothing recorded yet; its Run goes to {self._target} or beside it>"
        return "\n".join((f"<capture, Run in {self.folder}>", *self.notes))

    @property
    def run(self) -> "Run":
        """The Run that was recorded.

        Raises:
            WorkbenchError: nothing was recorded; the message says why and what to do.
        """
        if self._active is not None:
            raise RunError("the capture is still running: leave its with block first.")
        if self._problem is not None:
            raise self._problem
        if self.folder is None:
            raise RunError("nothing was captured yet: use it as `with wb.capture() as cap:`.")
        if self._run is None:
            from workbench.run.source import load

            self._run = load(self.folder, base=self._base)
        return self._run

    def watch(self, loader: Iterable[Batch]) -> Watched[Batch]:
        """The loader, with its waits measured; batches, length and attributes are its own."""

        def began() -> None:
            active = self._active
            if active is not None:
                active.watched(describe(loader), known_length(loader))

        def iterate(inner: Any, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
            active = self._active
            return make() if active is None else active.iterate(inner, make)

        def ended() -> None:
            active = self._active
            if active is not None:
                active.ended()

        return Watched(loader, began=began, waiting=self._waiting, iterate=iterate, ended=ended)

    def step(self) -> None:
        """Mark the end of a training step: call it last in every iteration.

        Raises:
            RunError: called outside the with block, or on another thread than it was entered on.
        """
        active = self._active
        if self._passes:
            return
        if active is None:
            raise RunError("cap.step() belongs inside the `with wb.capture() as cap:` block.")
        if active.is_copy():
            return  # of a child process, which nobody records
        if not active.is_here():
            raise RunError(
                "cap.step() was called on another thread than the capture was entered on: torch's "
                "profiler records one thread. Enter the capture on the thread that runs the loop."
            )
        waited_ns, profiled = active.waited_ns, active.schedule.is_recording
        ended_ns = time.monotonic_ns()  # before the profiler starts or stops between two steps
        active.step()
        if self._listeners:
            took_ns = None if self._let_go_ns is None else ended_ns - self._let_go_ns
            self._tell(
                SeenStep(
                    number=active.schedule.done,
                    ended_ns=ended_ns,
                    took_ns=took_ns,
                    waited_ns=waited_ns,
                    profiled=profiled,
                )
            )
        self._let_go_ns = time.monotonic_ns()

    def _is_left_out(self) -> bool:
        """Whether this rank does not record; says so where somebody asks for its Run."""
        if self._chosen is None or self._rank is None or self._rank.rank in self._chosen:
            return False
        named = ", ".join(map(str, self._chosen))
        self._problem = RunError(
            f"rank {self._rank.rank} records nothing: ranks=({named}) do. Open their folder."
        )
        return True

    def _place(self) -> Path:
        """Where the Run goes: of a rank of a job, below the job's folder."""
        if self._rank is None:
            return self._target
        return folder_of(self._target, self._rank, base=self._base)

    def _tell(self, step: SeenStep) -> None:
        for callback in tuple(self._listeners):
            try:
                callback(step)
            except Exception as error:  # noqa: BLE001 - whoever looks on never ends the loop
                self._listeners.remove(callback)
                self.notes.append(f"what looked on has failed and was left out: {error}")

    def range(self, name: str) -> AbstractContextManager[object]:
        """Name a part of the step, in any characters; it appears as a range in the trace."""
        active = self._active
        return nullcontext() if active is None else active.range(active.labels.safe(str(name)))

    def _waiting(self) -> AbstractContextManager[object]:
        active = self._active
        return nullcontext() if active is None else active.waiting()

    def abandon(self) -> None:
        """End a capture whose loop ended without telling, as a failed Trainer does."""
        if self.is_elsewhere():
            raise ProfilerBusyError(
                "a capture is running in another thread of this process, and torch can record only "
                "once at a time: wait until its training has ended."
            )
        if self._active is not None:
            self.notes.append("the loop never said that it ended: the capture was closed later")
            self._close(None)

    def is_running(self) -> bool:
        """Whether it was entered and not left yet."""
        return self._active is not None

    def is_elsewhere(self) -> bool:
        """Whether it runs on another thread than this one."""
        active = self._active
        return active is not None and not active.is_here() and not active.is_over()

    def _drop(self, active: Active) -> None:
        """Let go of a capture in a child process that was forked inside it."""
        active.owner.release()
        self._active = None
        self._problem = RunError(
            "this process was forked inside the capture: the process that entered it writes the "
            "Run. Enter a capture of its own to record the child."
        )

    def _close(self, error: BaseException | None) -> None:
        """Stop everything and keep what is complete."""
        from workbench.workload.interrupts import Deferred

        active = self._active
        if active is None:
            return
        with Deferred(deaths=error is None):
            try:
                active.stop()
                if error is not None and (why := active.explained(error)) is not None:
                    error.add_note(why)
                window, complete = active.schedule.window, active.schedule.complete
                if window is None or not complete:
                    self._problem = active.schedule.problem or explain_nothing(
                        active.schedule.done, active.schedule.plan, active.seen, error
                    )
                else:
                    measured = gather(active.schedule, active.seen, error)
                    measured.notes[:0] = self.notes
                    measured.loader = active.loader
                    place = self._place()
                    if self._rank is not None and (moved := moved_text(self._target, place)):
                        measured.notes.insert(0, moved)
                    self.folder = write_run(place, window, measured, base=self._base)
                    self.notes = measured.notes
            except WorkbenchError as problem:
                self._problem = problem
                if error is None:
                    raise
            finally:
                active.owner.release()
                self._active = None
