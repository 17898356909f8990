"""What a capture does between the steps of a loop: warm-up, pilot, window, and after it."""

from workbench.errors import ProfilerBusyError, RunError, WorkbenchError
from workbench.profiling.phases import CapturePlan, Phase, begin_phase
from workbench.recording.devices import device_in_use
from workbench.recording.garbage import GarbageProbe
from workbench.recording.plan import TRACE_LIMIT_BYTES, limit_window
from workbench.recording.window import State, Window
from workbench.settings import Record
from workbench.units import bytes_text

AFTER_MOST = 1000
"""Steps measured after the window; a longer loop is left alone from then on."""
BATCHES_MOST = 100
"""A step that takes more batches than this is a whole epoch, marked at the wrong place."""


class Schedule:
    """Takes a loop through its plan; every call comes from the loop's thread.

    Attributes:
        phases: What was measured, in order.
        done: Steps that the loop has completed.
        complete: Steps that are complete in the profiled window.
        window: The recording, once it began.
        problem: Why nothing can be recorded.
    """

    def __init__(self, plan: CapturePlan, record: Record, garbage: GarbageProbe) -> None:
        self.plan = plan
        self.phases: list[Phase] = []
        self.notes: list[str] = []
        self.done = 0
        self.complete = 0
        self.window: Window | None = None
        self.problem: WorkbenchError | None = None
        self._asked = plan
        self.record = record
        self._garbage = garbage
        self._longest_ns: float | None = None
        self._begin("first")
        self._cross()

    @property
    def is_recording(self) -> bool:
        """Whether what happens now appears in a trace."""
        return self.window is not None and self.window.state is State.RECORDING

    def fit(self, length: int | None) -> None:
        """Make the plan fit a loop of this length; only before its first step."""
        self.plan = self._asked.fitted(length)
        if self.plan != self._asked:
            self.notes.append(
                f"the loop has {length} iterations, warmup={self._asked.warmup} and "
                f"steps={self._asked.steps} need {self._asked.end}: "
                f"{self.plan.warmup} for warm-up and {self.plan.steps} profiled instead"
            )
            self._cross()

    def step(self, waited_ns: int) -> None:
        """A step of the loop is complete; it waited so long for its input."""
        phase = self.phases[-1]
        phase.step(waited_ns)
        self._garbage.counting = self._garbage.counting and not phase.is_full
        if self.window is not None and self.is_recording:
            self.window.end_step()
            self.complete += phase.name == "window"
        self.done += 1
        self._cross()

    def guard(self, batches: int) -> None:
        """End a window inside a step that has no end, such as a whole epoch marked as one.

        Args:
            batches: How many the current step has taken.
        """
        if batches <= BATCHES_MOST or not self.is_recording:
            return
        phase = self.phases[-1]
        if phase.name == "pilot":
            self.problem = RunError(
                f"one step took more than {BATCHES_MOST} batches, and its trace would have no "
                "bound: call cap.step() after every batch, not after every epoch."
            )
            self._end("off")
        elif self._longest_ns is not None and phase.age_ns() > self._longest_ns:
            self.notes.append(
                f"the window ended inside a step: its trace reached {bytes_text(TRACE_LIMIT_BYTES)}"
            )
            self._end("after")

    def stop(self) -> None:
        """The loop has ended."""
        self._garbage.counting = self._garbage.marking = False
        if self.window is not None:
            self.window.stop()

    def _cross(self) -> None:
        """Do what the plan asks for before the next step, whose number is ``done``."""
        try:
            self._turn(self.phases[-1].name)
        except (WorkbenchError, OSError) as error:  # the loop must go on, whatever becomes of us
            self.problem = _explained(error)
            self._end("off")
        if self.window is not None:
            self.window.begin_step(self.done)

    def _turn(self, phase: str) -> None:
        number, plan = self.done, self.plan
        if phase == "pilot" and number > plan.pilot:
            self._end_pilot()
            if number < plan.warmup:
                self._window().prepare()
                self._begin("lead")
                return
        if phase in ("first", "before") and number == plan.pilot:
            self._window().prepare()
            self._start("pilot")
        elif phase == "first" and number:
            self._begin("before")  # only now it is known which device the loop uses
        elif phase in ("pilot", "lead") and number == plan.warmup:
            if self.window is None:
                self._window().prepare()
            self._start("window")
        elif phase == "window" and not self.is_recording:
            self.notes.append("a torch profiler of your own started, so the window ended there")
            self._end("after")
        elif phase == "window" and number >= self.plan.end:
            self._end("after")

    def _window(self) -> Window:
        self.window = Window(self.record, device_in_use())
        return self.window

    def _start(self, name: str) -> None:
        if self.window is not None:
            self.window.start()
        self._begin(name)

    def _end_pilot(self) -> None:
        window, self.window = self.window, None
        if window is None:
            return
        window.stop()
        if window.gave_way:
            raise ProfilerBusyError(
                "the loop starts a torch profiler of its own, and two at once empty each other: "
                "take one of them out, or open the trace that yours exports with wb.open(...)."
            )
        size = window.measure()
        steps, notes = limit_window(self.plan.steps, size)
        self.plan = CapturePlan(warmup=self.plan.warmup, steps=steps)
        self.notes += notes
        (took,) = self.phases[-1].durations_ns()
        self._longest_ns = took * TRACE_LIMIT_BYTES / max(size, 1)

    def _end(self, next_phase: str) -> None:
        if self.window is not None:
            self.window.stop()
        self._begin(next_phase)

    def _begin(self, name: str) -> None:
        most = {"after": AFTER_MOST, "off": 0}.get(name)
        self.phases.append(begin_phase(name, most=most))
        self._garbage.counting = name in ("before", "after")
        self._garbage.marking = name == "window"


def _explained(error: Exception) -> WorkbenchError:
    if isinstance(error, WorkbenchError):
        return error
    return RunError(
        f"nothing could be recorded ({error}): free some space, or set TMPDIR to a folder on "
        "another disk."
    )
