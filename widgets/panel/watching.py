"""A capture around the user's own loop, in the words of a session: to look at, not to switch."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.profiling.seen_step import SeenStep
from workbench.settings import Settings

if TYPE_CHECKING:
    from workbench.profiling.capture import Capture

KEPT = 10_000
FRESH_NS = 2_000_000_000
"""So long after its last step a loop counts as running."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is known of the loop, as ``Session.state`` tells it of a training."""

    status: str
    doing: str
    step: int
    error: str | None = None
    remedy: str | None = None
    settings: Settings = field(default_factory=Settings)
    pending: Settings | None = None
    epoch: int | None = None
    samples_per_s: float | None = None
    overhead_ratio: float | None = None
    bursts: "tuple[Recorded, ...]" = ()
    trial: None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The one recording that a capture makes, as the bursts of a session are told."""

    status: str
    run: Any
    findings: Any
    began_ns: int | None = None
    ended_ns: int | None = None
    error: str | None = None


class Steps:
    """The last steps of the loop, as the telemetry of a session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: deque[tuple[int, int, float, float, bool]] = deque(maxlen=KEPT)
        self._samples: deque[tuple[int, float, float]] = deque(maxlen=KEPT)

    def add(self, step: SeenStep) -> None:
        """A step is complete; the first one has no beginning that is known."""
        took = float("nan") if step.took_ns is None else float(step.took_ns)
        waited = min(float(step.waited_ns), took)
        with self._lock:
            self._rows.append((step.number, step.ended_ns, took, waited, step.profiled))

    def sample(self, at_ns: int, cpu_percent: float, rss_bytes: float) -> None:
        """What the machine did meanwhile."""
        with self._lock:
            self._samples.append((at_ns, cpu_percent, rss_bytes))

    def recorded_ns(self) -> tuple[int | None, int | None]:
        """When the steps under the profiler began and ended, of those that are kept."""
        with self._lock:
            under = [(at, took) for _, at, took, _, profiled in self._rows if profiled]
        if not under:
            return None, None
        first, took = under[0]
        return (first - (int(took) if np.isfinite(took) else 0)), under[-1][0]

    @property
    def last_ns(self) -> int | None:
        """When the last step was complete."""
        with self._lock:
            return self._rows[-1][1] if self._rows else None

    def columns(self, since_step: int = 0) -> dict[str, NDArray[Any]]:
        """Steps after one."""
        with self._lock:
            rows = [row for row in self._rows if row[0] >= since_step and row[2] == row[2]]
        if not rows:
            return {}
        step, at, took, waited, profiled = (
            np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)
        )
        rest = {"other_ns": took - waited, "profiled": profiled > 0}
        return {"step": step, "at_ns": at, "step_ns": took, "input_ns": waited, **rest}

    def system(self, since_ns: int = 0) -> dict[str, NDArray[Any]]:
        """Samples after a moment."""
        with self._lock:
            rows = [row for row in self._samples if row[0] >= since_ns]
        if not rows:
            return {}
        at, cpu, rss = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
        return {"at_ns": at, "cpu_percent": cpu[:, None], "rss_bytes": rss}


class Watching:
    """What a panel asks of a session, answered for a capture.

    Args:
        capture: The capture, entered or not yet.
    """

    changes: tuple[Any, ...] = ()
    changes_dropped = 0
    watch_changes = False
    burst_every_s: float | None = None

    def __init__(self, capture: "Capture") -> None:
        import psutil

        self.telemetry = Steps()
        self._capture = capture
        self._callbacks: list[Callable[[str], None]] = []
        self._process = psutil.Process()
        self._sampled_ns = 0
        self._recorded: Recorded | None = None
        self._unlisten = capture.listen(self._step)

    def _step(self, step: SeenStep) -> None:
        self.telemetry.add(step)
        if step.ended_ns - self._sampled_ns > 500_000_000:
            self._sample(step.ended_ns)
        for callback in self._callbacks:
            callback("step")

    def _sample(self, at_ns: int) -> None:
        import psutil

        self._sampled_ns = at_ns
        used = psutil.cpu_percent()
        self.telemetry.sample(at_ns, used, float(self._process.memory_info().rss))

    @property
    def state(self) -> Seen:
        """Running while steps come, and whether the capture is over."""
        last, running = self.telemetry.last_ns, self._capture.is_running()
        rows = self.telemetry.columns()
        step = int(rows["step"][-1]) if rows else 0
        fresh = last is not None and time.monotonic_ns() - last < FRESH_NS
        if running:
            status = "running" if fresh else "paused"
            doing = "Your own loop runs." if fresh else "Waiting for the next step of your loop."
        elif self._capture.folder is not None:
            status, doing = "stopped", f"Your loop has ended; its Run is in {self._capture.folder}."
        else:
            status, doing = "ready", "Waiting for the capture to be entered."
        return Seen(status=status, doing=doing, step=step, bursts=self._bursts())

    def _bursts(self) -> tuple[Recorded, ...]:
        """The capture's own recording, once it is over."""
        if self._recorded is None and self._capture.folder is not None:
            run = self._capture.run
            began, ended = self.telemetry.recorded_ns()
            self._recorded = Recorded(
                status="done", run=run, findings=run.findings, began_ns=began, ended_ns=ended
            )
        return () if self._recorded is None else (self._recorded,)

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Be told of every step."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def offers(self) -> tuple[Any, ...]:
        """Nothing of a loop of one's own can be switched."""
        return ()

    def stop(self, keep: bool = False, timeout_s: float = 10.0) -> None:
        """Look no longer; the loop goes on."""
        self._unlisten()
