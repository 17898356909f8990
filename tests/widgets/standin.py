"""A session that trains nothing: its steps are made of numbers that a test chooses."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from workbench.settings import Settings
from workbench.statistics.change import Change as Effect

MS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class State:
    """What ``Session.state`` tells."""

    status: str = "ready"
    doing: str = "Nothing runs yet."
    error: str | None = None
    remedy: str | None = None
    settings: Settings = field(default_factory=Settings)
    pending: Settings | None = None
    step: int = 0
    epoch: int = 0
    samples_per_s: float | None = None
    overhead_ratio: float | None = None
    bursts: tuple[Any, ...] = ()
    trial: Any = None


class Telemetry:
    """Columns that grow by calls of ``add``."""

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        self.samples: dict[str, list[Any]] = {}

    def add(self, **values: float) -> None:
        for name, value in values.items():
            self.rows.setdefault(name, []).append(value)

    def sample(self, **values: Any) -> None:
        for name, value in values.items():
            self.samples.setdefault(name, []).append(value)

    def columns(self, since_step: int = 0) -> dict[str, Any]:
        arrays = {name: np.array(values, dtype=float) for name, values in self.rows.items()}
        keep = arrays.get("step", np.empty(0)) >= since_step
        return {name: column[keep] for name, column in arrays.items()}

    def system(self, since_ns: int = 0) -> dict[str, Any]:
        arrays = {name: np.array(values, dtype=float) for name, values in self.samples.items()}
        keep = arrays.get("at_ns", np.empty(0)) >= since_ns
        return {name: column[keep] for name, column in arrays.items()}


class StandIn:
    """Remembers what was asked of it, in the words of ``workbench.session.Session``."""

    def __init__(self) -> None:
        self.state = State()
        self.telemetry = Telemetry()
        self.changes: tuple[Any, ...] = ()
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

    def burst(self, steps: int = 10) -> Any:
        self._note("burst", steps)
        made = SimpleNamespace(status="waiting", run=None, findings=None, error=None)
        self.become(bursts=(*self.state.bursts, made))
        return made

    def verify(self, finding: Any) -> Any:
        self._note("verify", finding)
        made = SimpleNamespace(status="running", verification=None, error=None, asked=finding)
        self.become(trial=made)
        return made

    def offers(self) -> tuple[Any, ...]:
        self._note("offers")
        return self.offered


def train(
    session: StandIn, steps: int, *, first: int = 0, step_ms: float = 20.0, input_share: float = 0.4
) -> None:
    """So many steps, a little uneven, one after the other."""
    random = np.random.default_rng(first + 1)
    rows = session.telemetry.rows
    at = rows["at_ns"][-1] if rows else 1e9
    for step in range(first, first + steps):
        took = step_ms * MS * (1 + 0.05 * random.standard_normal() + 0.6 * (random.random() < 0.01))
        at += took
        waits = took * input_share * (1 + 0.1 * random.standard_normal())
        session.telemetry.add(
            step=step,
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
            session.telemetry.sample(
                at_ns=at,
                cpu_percent=(100 * min(1.0, busy + 0.35), 100 * max(0.0, busy - 0.35)),
                rss_bytes=1.2e9 + 2e5 * step,
                disk_read_bytes_s=4e7 * (1 + 0.3 * random.standard_normal()),
                disk_write_bytes_s=1e5,
            )
    session.become(step=first + steps, epoch=(first + steps) // 400, samples_per_s=32e3 / step_ms)


def change(number: int, step: int, before: Settings, after: Settings, **more: Any) -> Any:
    """A change of a switch, as the session tells it."""
    told = {"number": number, "step": step, "before": before, "after": after}
    rest = {"applied_ns": 1, "error": None, "effect": None, "note": None, "per": "step"}
    return SimpleNamespace(**{**told, **rest, **more})


def effect(ratio: float, low: float, high: float) -> Effect:
    """A measured change of the step time."""
    verdict = "faster" if high < 1 else "slower" if low > 1 else "cannot_tell"
    return Effect(verdict=verdict, ratio=ratio, low=low, high=high, n_a=80, n_b=80)  # type: ignore[arg-type]
