"""Two ceilings of a loop: its steps with batches at hand, and its loader with nobody stepping.

Some batches are taken from the loader as fast as it gives them (*loader alone*). The first of them
are kept, and steps run on each of them once while the loader rests (*replay*): nothing that a step
writes to a batch, and nothing that it remembers of one, meets that batch again.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from workbench.recording.clock import step_clock
from workbench.recording.loader.sizes import bytes_in
from workbench.recording.loop import Loop

SHARE = 0.05
"""Of the time so far, what loader alone and replay may each take (own choice: 10 % together)."""
LEAST = 6
"""Batches of the loader alone that are taken whatever they take, and replayed but for the first."""
LEAST_INSIDE = 4
"""The same for each of two parts."""
MOST = 64
"""Batches of the loader alone beyond which more tell nothing more."""
KEPT_MOST = 21
KEPT_MOST_BYTES = 1_000_000_000
KEPT_SHARE = 0.1
"""Share of the available memory that kept batches may fill."""
KEPT_SHARED = 0.25
"""Share of the free shared memory that they may hold, where worker processes made them."""
KEPT_UNSIZED = 8
"""Batches that are kept when their size is not known."""
READY = 0.05
"""A step that waits for less than this part of itself found its batch ready."""
AFFORDABLE = 0.5
"""Share of the time that is left which the least measurement may take."""


@dataclass(frozen=True, kw_only=True)
class Before:
    """What was measured before the ceilings."""

    elapsed_ns: int
    left_ns: float | None
    step_ns: list[int]
    """Steps without the profiler, the latest last."""
    input_ns: list[int]
    """How long each of them waited for its batch."""


@dataclass(kw_only=True)
class Ceilings:
    """Measures both ceilings in one or several parts of a run.

    Where worker processes load, only the last part measures: they would fill their queue again
    while the replayed steps run, and take processors from them.
    """

    loop: Loop
    device: Any
    loader: Mapping[str, Any]
    """``workers`` and ``prefetch_factor``, where they are known."""
    replay_ns: list[int] = field(default_factory=list)
    waits_ns: list[int] = field(default_factory=list)
    """Of the batches that count for the loader alone."""
    samples: int | None = 0
    epochs: int = 0
    notes: list[str] = field(default_factory=list)
    keeps_one: bool = False
    """Whether the last part sets a batch aside."""
    spare: list[Any] = field(default_factory=list)
    """A batch that nothing was done with, once the last part has drawn its own."""

    def measure(self, before: Before, *, last: bool) -> None:
        """A part of the measurement; the last one ends the loader.

        An error of the data or the step in the last part does not end the run, which has all else.
        """
        if not (last or self._inside) or self.notes:
            return
        if not self._fits(before):
            self.notes.append(
                "the step without its loader, and the loader alone, were not measured: time_limit_s"
                " leaves too little time"
            )
            return
        if not last:
            self._replay(self._draw(before), before)
            return
        self.loop.rest_probes()
        try:
            held = self._draw(before)
            self._set_aside()
            self.loop.end_loader()
            self._replay(held, before)
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            self.notes.append(
                "the step without its loader, and the loader alone, were not measured to the end: "
                f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"
            )

    def _set_aside(self) -> None:
        """One batch more; that there is none costs nothing that was measured."""
        if self.keeps_one:
            with suppress(Exception):  # the data's own, and who wanted the batch says that none is
                self.spare = [self.loop.draw()]

    def loader_alone(self) -> dict[str, Any] | None:
        """For ``run.json``."""
        seconds = sum(self.waits_ns) / 1e9
        if not self.waits_ns or seconds <= 0:
            return None
        count = len(self.waits_ns)
        return {
            "batches": count,
            "seconds": seconds,
            "batches_per_s": count / seconds,
            "samples_per_s": None if self.samples is None else self.samples / seconds,
            "epochs": self.epochs,
        }

    @property
    def _inside(self) -> bool:
        """Whether the loop's own process loads, so that the loader rests while it steps."""
        return self.loader.get("workers") == 0

    @property
    def _workers(self) -> int:
        return self.loader.get("workers") or 0

    @property
    def _least(self) -> int:
        return LEAST_INSIDE if self._inside else LEAST

    def _fits(self, before: Before) -> bool:
        if before.left_ns is None or not before.step_ns:
            return True
        steps = 2 * self._least + self._ready(before) + self._workers + 1
        return steps * statistics.median(before.step_ns) < AFFORDABLE * before.left_ns

    def _ready(self, before: Before) -> int:
        """Batches that may lie ready: they came before anybody looked at the clock."""
        if self.loader.get("workers") is None:
            return LEAST  # of a loader that cannot be asked
        most = self._workers * (self.loader.get("prefetch_factor") or 0)
        if not most:
            return 0
        latest = list(zip(before.step_ns, before.input_ns, strict=False))[-most:]
        return most if any(wait < READY * step for step, wait in latest) or not latest else 0

    def _draw(self, before: Before) -> list[Any]:
        """Take batches until there are enough; returns those that are kept for the replay."""
        from workbench.workload.placement import samples_in

        budget, round_ = SHARE * before.elapsed_ns, max(self._workers, 1)
        ready, room, spent = self._ready(before), 0, 0
        held, waits, samples, epochs = list[Any](), list[int](), list[int | None](), 0
        for number in range(ready + MOST + round_):
            epoch, began = self.loop.epochs, time.monotonic_ns()
            batch = self.loop.draw()
            wait = time.monotonic_ns() - began
            spent += wait
            began_epoch = self.loop.epochs > epoch
            if not number:
                room = _room(batch, shared=not self._inside)
            if len(held) < room:
                held.append(batch)
            if began_epoch and len(waits) >= max(self._least, round_):
                break  # of long epochs the start is left out; short ones have it in what counts
            if number >= ready:
                waits.append(wait)
                samples.append(samples_in(batch))
                epochs += began_epoch
            enough = len(waits) >= self._least and len(waits) % round_ == 0
            if enough and (spent > budget or len(waits) >= MOST):
                break
        self.waits_ns += waits
        self.epochs += epochs
        known = [count for count in samples if count is not None]
        whole = self.samples is not None and len(known) == len(samples)
        self.samples = (self.samples or 0) + sum(known) if whole else None
        return held

    def _replay(self, held: list[Any], before: Before) -> None:
        """Steps on the batches that were kept; the first of several is not counted."""
        budget, clock = SHARE * before.elapsed_ns, step_clock(self.device)
        if len(held) > 1:
            self.loop.serve(held)
        began, done = time.monotonic_ns(), 0
        clock.start()
        while held and (done < self._least or time.monotonic_ns() - began < budget):
            self.loop.serve(held)
            clock.step()
            done += 1
        (times,) = clock.durations_ns()
        self.replay_ns += times


def _room(batch: Any, *, shared: bool, free: Callable[[], int | None] | None = None) -> int:
    """How many batches like this one may be kept."""
    size = bytes_in(batch)
    if not size:
        return KEPT_UNSIZED
    limits = [KEPT_MOST_BYTES, KEPT_SHARE * _available()]
    room = (free or _shared_free)() if shared else None
    if room is not None:
        limits.append(KEPT_SHARED * room)
    return max(1, min(KEPT_MOST, int(min(limits) // size)))


def _available() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


def _shared_free() -> int | None:
    from workbench.machine import shared_memory

    room = shared_memory()
    return None if room is None else room.free
