"""A host and a device that work through a script, and remember why.

The host is a *flow*: one thing happens after the other, whichever thread it happens on. Every
stretch of it is an ``Activity`` with the cause that the script gave it. The device takes what was
launched, stream by stream, after a latency and with a spacing. Nothing here knows the analysis.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MAIN, AUTOGRAD, PREFETCH = 100, 200, 300
GENERIC = frozenset({"host_operators", "host_python", "host_other"})
"""Ordinary host code, which comes late when the host had to wait before it."""


class Draw(random.Random):
    """Random times on a grid: old profilers wrote whole microseconds."""

    tick = 1

    def ns(self, low: float, high: float) -> int:
        """A time between the two, each order of magnitude equally likely."""
        value = low * (high / low) ** self.random()
        return max(self.tick, round(value / self.tick) * self.tick)

    def chance(self, share: float) -> bool:
        """True in this share of the cases."""
        return self.random() < share


@dataclass(kw_only=True)
class Record:
    """What a profiler writes down."""

    kind: str
    name: str
    thread: int
    start: int
    end: int
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Late:
    """The host had to wait for the device: what it does next comes that much too late."""

    start: int
    """Of the blocking call."""
    end: int
    drained: int
    """When the work that it waited for was done."""
    cause: str = "synchronization"
    spoiled: bool = False
    """Something with a cause of its own has happened since."""


@dataclass(kw_only=True)
class Activity:
    """A stretch of a flow. ``definition`` differs where metrics.md words it otherwise."""

    start: int
    end: int
    cause: str
    definition: str
    call: int | None = None
    """Correlation of the launching call that it is part of."""
    late: Late | None = None
    spoiled: bool = False


@dataclass(kw_only=True)
class Work:
    """A kernel, a copy or a set; ``arrived`` is when the device could have begun at the earliest.

    ``visible`` is false for work whose record is missing, ``launched`` for a missing call.
    """

    name: str
    kind: str
    stream: int
    start: int
    end: int
    call: int
    arrived: int
    flow: "Flow"
    visible: bool = True
    launched: bool = True
    device: int = 0


class Device:
    """Streams that work in order, side by side."""

    def __init__(self, draw: Draw, *, latency: int, spacing: int) -> None:
        self.draw = draw
        self.latency, self.spacing = latency, spacing
        self.works: list[Work] = []

    def submit(self, work: Work, at: int, after: Sequence[Work] = ()) -> Work:
        """Hand over at an instant; the work's end holds its length until its start is known."""
        length = work.end
        work.arrived = at + self.draw.ns(self.latency, 1.5 * self.latency)
        before = [w for w in self.works if (w.device, w.stream) == (work.device, work.stream)][
            -1:
        ] + list(after)
        spacing = self.draw.ns(self.spacing, 2 * self.spacing)
        work.start = max([work.arrived, *(w.end + spacing for w in before)])
        work.end = work.start + length
        self.works.append(work)
        return work

    def drained(self, at: int, streams: Sequence[int] | None = None) -> int:
        """When everything launched before an instant is done."""
        asked = [w for w in self.works if not w.device and (not streams or w.stream in streams)]
        return max((w.end for w in asked if w.arrived < at + 2 * self.latency), default=at)


class Flow:
    """One line of control over one or two threads."""

    def __init__(self, machine: "Machine", thread: int, *, stacks: bool) -> None:
        self.machine, self.draw, self.thread = machine, machine.draw, thread
        self.now = 1_000_000
        self.activities: list[Activity] = []
        self.python_cause = "host_python" if stacks else "host_other"
        self.stacks = stacks
        self.late: Late | None = None
        self.inside: list[str] = []
        """Causes of the operators and ranges that are open."""

    @property
    def ordinary(self) -> str:
        """The cause of code that does nothing in particular here."""
        return self.inside[-1] if self.inside else self.python_cause

    def spend(
        self,
        ns: int,
        cause: str | None = None,
        *,
        definition: str | None = None,
        call: int | None = None,
    ) -> None:
        """Let time pass for a cause; without one, for whatever code runs here."""
        cause = cause or self.ordinary
        definition = definition or cause
        echoes = definition in GENERIC | {"garbage_collection"}
        if self.late and not echoes and call is None:
            self.late.spoiled = True
        self.activities.append(
            Activity(
                start=self.now,
                end=self.now + ns,
                cause=cause,
                definition=definition,
                call=call,
                late=self.late if echoes else None,
                spoiled=bool(self.late and self.late.spoiled),
            )
        )
        self.now += ns

    @contextmanager
    def record(
        self, kind: str, name: str, *, cause: str | None = None, **args: Any
    ) -> Iterator[None]:
        """A record around what happens inside; a cause becomes that of ordinary code in it."""
        made = Record(kind=kind, name=name, thread=self.thread, start=self.now, end=0, args=args)
        self.machine.records.append(made)
        if cause:
            self.inside.append(cause)
        yield
        if cause:
            self.inside.pop()
        made.end = self.now

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A Python frame, recorded where stacks are."""
        if not self.stacks:
            yield
            return
        with self.record("python", name):
            yield

    def operator(self, name: str, **args: Any) -> Any:
        """An operator of the framework."""
        cause = self.ordinary if self.ordinary not in GENERIC else "host_operators"
        return self.record("operator", name, cause=cause, **args)

    def call(self, name: str, ns: int, cause: str | None = None, **rest: Any) -> None:
        """A runtime call that hands over no work."""
        with self.record("runtime", name, correlation=self.machine.correlation()):
            self.spend(ns, cause, **rest)

    def launch(
        self,
        name: str,
        ns: int,
        *,
        kind: str = "kernel",
        stream: int = 7,
        api: str = "launch",
        after: Sequence[Work] = (),
        loading: int = 0,
        flush: int = 0,
        count: int = 1,
        blocking: bool = False,
        device: int = 0,
    ) -> Work:
        """Hand work over in one call; ``count`` above one is a graph, ``blocking`` waits for it."""
        machine, start = self.machine, self.now
        ident = machine.correlation()
        ordinary = self.ordinary
        with self.record("runtime", api, correlation=ident):
            if loading:
                self.spend(loading, "kernel_loading", call=ident)
            if flush:
                with self.record("overhead", "Command Buffer Full"):
                    self.spend(flush, "profiler", call=ident)
            self.spend(self.draw.ns(2_000, 4_000), ordinary, call=ident)
            handed = self.now
            for _ in range(count):
                work = Work(
                    name=name, kind=kind, stream=stream, start=0, end=ns,
                    call=ident, arrived=0, flow=self, device=device,
                )  # fmt: skip
                machine.device.submit(work, handed, after)
            if blocking:
                waits = max(work.end + self.draw.ns(2_000, 6_000) - self.now, self.draw.tick)
                self.spend(waits, "synchronization", call=ident)
            else:
                self.spend(self.draw.ns(1_000, 2_000), ordinary, call=ident)
        self.late = None
        if blocking:
            self.late = Late(start=start, end=self.now, drained=work.end)
        return work

    def synchronize(
        self,
        api: str = "stream_sync",
        *,
        streams: Sequence[int] | None = None,
        cause: str = "synchronization",
        extra: int = 0,
    ) -> None:
        """Wait in a call until what was launched is done, and for the call's own work."""
        start = self.now
        drained = self.machine.device.drained(start, streams)
        ends = max(drained, start) + self.draw.ns(3_000, 8_000) + extra
        self.call(api, ends - start, cause)
        if drained > start:
            self.late = Late(start=start, end=self.now, drained=drained, cause=cause)
            self.late.spoiled = cause != "synchronization"


class Machine:
    """One host, one device, and what the profiler saw of both."""

    def __init__(self, draw: Draw, *, latency: int, spacing: int) -> None:
        self.draw = draw
        self.device = Device(draw, latency=latency, spacing=spacing)
        self.records: list[Record] = []
        self.main: Flow | None = None
        self._correlation = 0

    def stop(self, at: int) -> None:
        """The program ends: what other threads would have done later is not done."""
        late = {w.call for w in self.device.works if w.flow is not self.main and w.arrived > at}
        self.device.works = [w for w in self.device.works if w.call not in late]
        self.records = [r for r in self.records if r.args.get("correlation") not in late]

    def correlation(self) -> int:
        """A fresh number that joins a call to its work."""
        self._correlation += 1
        return self._correlation
