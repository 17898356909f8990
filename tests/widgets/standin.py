"""A session that trains nothing: its steps are made of numbers that a test chooses."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from workbench.recording.telemetry import COLUMNS, Telemetry
from workbench.session.burst import Burst
from workbench.session.records import Change, State
from workbench.session.trial import Trial
from workbench.settings import Settings
from workbench.statistics.change import Change as Effect

MS = 1_000_000


class Planted(Telemetry):
    """The session's own telemetry, whose rows a test writes by name."""

    def plant(self, **values: float) -> None:
        """A step; what is left out was not measured."""
        none = {"step": 0, "at_ns": 0, "epoch": 0, "change": 0, "profiled": False}
        self.add(tuple(values.get(name, none.get(name, float("nan"))) for name in COLUMNS))


class StandIn:
    """Remembers what was asked of it, in the words of ``workbench.session.Session``."""

    def __init__(self) -> None:
        self.state = State(status="ready", doing="Nothing runs yet.")
        self.telemetry = Planted()
        self.changes: tuple[Change, ...] = ()
        self.changes_dropped = 0
        self.watch_changes = False
        self.burst_every_s: float | None = None
        self.asked: list[Any] = []
        self.fail: Exception | None = None
        self.offered: tuple[Any, ...] = ()
        self._callbacks: list[Callable[[str], None]] = []

    def become(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        for callback in self._callbacks:
            callback("state")

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def _note(self, *what: Any) -> None:
        if self.fail is not None:
            raise self.fail
        self.asked.append(what)

    def start(self) -> None:
        self._note("start")
        self.become(status="running", doing="Training on the CPU.")

    def pause(self) -> None:
        self._note("pause")
        self.become(status="paused", doing="Paused between two steps.")

    def resume(self) -> None:
        self._note("resume")
        self.become(status="running", doing="Training on the CPU.")

    def step_once(self) -> None:
        self._note("step_once")

    def stop(self, keep: bool = False, timeout_s: float = 10.0) -> None:
        self._note("stop", keep)
        self.become(status="stopped", doing="Stopped; everything was put back.")

    def apply(self, settings: Settings) -> None:
        self._note("apply", settings)

    def replace(self, settings: Settings) -> None:
        self._note("replace", settings)
        self.become(pending=settings)

    def undo(self) -> None:
        self._note("undo")

    def burst(self, steps: int = 10) -> Burst:
        self._note("burst", steps)
        made = Burst(number=len(self.state.bursts) + 1, steps=steps, reason="asked for")
        self.become(bursts=(*self.state.bursts, made))
        return made

    def verify(self, finding: Any) -> Trial:
        self._note("verify", finding)
        made = Trial(finding)
        made.status = "running"
        self.become(trial=made)
        return made

    def offers(self) -> tuple[Any, ...]:
        self._note("offers")
        return self.offered


def done(run: Any, *findings: Any) -> Burst:
    """A burst that is read."""
    made = Burst(number=1, steps=10, reason="asked for")
    made.run, made.findings = run, findings
    made.end("done")
    return made


def train(
    session: StandIn, steps: int, *, first: int = 0, step_ms: float = 20.0, input_share: float = 0.4
) -> None:
    """So many steps, a little uneven, one after the other."""
    random = np.random.default_rng(first + 1)
    at = last_ns(session) or 1e9
    force = max((c.number for c in session.changes if c.applied_ns is not None), default=0)
    for step in range(first, first + steps):
        took = step_ms * MS * (1 + 0.05 * random.standard_normal() + 0.6 * (random.random() < 0.01))
        at += took
        waits = took * input_share * (1 + 0.1 * random.standard_normal())
        session.telemetry.plant(
            step=step,
            change=force,
            at_ns=at,
            step_ns=took,
            input_ns=waits,
            forward_ns=0.35 * (took - waits),
            backward_ns=0.5 * (took - waits),
            optimizer_ns=0.1 * (took - waits),
            other_ns=0.05 * (took - waits),
            loss=2.3 * np.exp(-step / 900) + 0.05 * random.random(),
            samples=32,
        )
        if step % 12 == 0:
            busy = 0.5 + 0.1 * random.random()
            session.telemetry.sampled(
                {
                    "at_ns": int(at),
                    "cpu_percent": (100 * min(1.0, busy + 0.35), 100 * max(0.0, busy - 0.35)),
                    "rss_bytes": 1.2e9 + 2e5 * step,
                    "disk_read_bytes_s": 4e7 * (1 + 0.3 * random.standard_normal()),
                    "disk_write_bytes_s": 1e5,
                }
            )
    session.become(step=first + steps, epoch=(first + steps) // 400, samples_per_s=32e3 / step_ms)


def last_ns(session: StandIn) -> int | None:
    """When the last step was complete."""
    rows = session.telemetry.last(1)
    return int(rows["at_ns"][0]) if len(rows["at_ns"]) else None


def change(number: int, step: int, before: Settings, after: Settings, **more: Any) -> Change:
    """A change of a switch that was applied, unless more is said."""
    told = {"number": number, "step": step, "before": before, "after": after}
    return Change(**{"asked_ns": 1, "applied_ns": 1, **told, **more})


def recorded(name: str, **settings: Any) -> Any:
    """The Run of a burst under these settings, as far as the panel looks at it."""
    timings = SimpleNamespace(
        step_ns=[90 * MS] * 5 + [13 * MS, 14 * MS, 15 * MS],
        warmup=5,
        profiled_step_ns=[40 * MS] * 10,
    )
    return SimpleNamespace(name=name, record=SimpleNamespace(settings=settings, timings=timings))


def effect(ratio: float, low: float, high: float) -> Effect:
    """A measured change of the step time."""
    verdict = "faster" if high < 1 else "slower" if low > 1 else "cannot_tell"
    return Effect(verdict=verdict, ratio=ratio, low=low, high=high, n_a=80, n_b=80)  # type: ignore[arg-type]
