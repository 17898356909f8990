"""A loader on the small machine, made like torch's, that notes what every batch was in, and when.

What the probes of a real loader would have recorded comes out as the tables that a Run reads; the
truth comes out as stretches of time by part, per batch, in the order in which things really
happened, sample by sample.
"""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from tests.analysis.stalls.machine import Machine, Process, Queue
from workbench.analysis.intervals import Spans
from workbench.store.loader import BATCH_COLUMNS, EPOCH_COLUMNS, WORKER_COLUMNS, LoaderRecords

US, MS = 1_000, 1_000_000
Span = tuple[int, int, str]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a loader and its loop are like; lengths are means in nanoseconds."""

    workers: int = 2
    prefetch: int = 2
    samples: int = 8
    steps: int = 40
    epochs: int = 1
    persistent: bool = False
    pinning: bool = False
    handed: int = 1
    """Batches are handed to workers in groups of so many, each group in a random order."""
    looked: float = 1.0
    """Share of the samples that were looked at."""
    step: int = 5 * MS
    start: int = 0
    read: int = 0
    decode: int = 0
    delay: int = 0
    block: int = 0
    collate: int = 0
    send: int = 20 * US
    unpickle: int = 20 * US
    pin: int = 0
    sampler: int = 5 * US


@dataclass(kw_only=True)
class Made:
    """A batch on its way."""

    epoch: int
    number: int
    stream: int
    worker: int | None = None
    spans: list[Span] = field(default_factory=list)
    row: dict[str, Any] = field(default_factory=dict)

    def note(self, start: int, end: int, part: str) -> None:
        """From start to end it was in this part."""
        if end > start:
            self.spans.append((start, end, part))


class SimulatedLoader:
    """Runs a plan; afterwards ``batches``, ``waits`` and the tables are there."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.machine = Machine()
        self.batches: list[Made] = []
        self.waits: list[tuple[int, int]] = []
        self.outside: list[Span] = []
        """Of the loop's thread inside its waits: starting the loader, and its own small work."""
        self._random = random.Random(seed)
        self._epochs: list[dict[str, Any]] = []
        self._workers: list[dict[str, Any]] = []
        self._queues: list[Queue] = []
        self._streams = 0
        self.machine.resume(self._loop())
        self.machine.run()

    def records(self) -> LoaderRecords:
        """What the probes would have written."""
        return LoaderRecords(
            batches=table([made.row for made in self.batches], BATCH_COLUMNS),
            workers=table(self._workers, WORKER_COLUMNS),
            epochs=table(self._epochs, EPOCH_COLUMNS),
            about={},
        )

    def exposed(self) -> Spans:
        """All waits."""
        start, end = np.array(self.waits, np.int64).T
        return Spans(start, end)

    def truth(self, made: Made, start: int, end: int) -> dict[str, int]:
        """What a batch was in while the loop waited for it in this stretch."""
        found: dict[str, int] = {}
        left = end - start
        spans = [(a, b, part) for a, b, part in (*self.outside, *made.spans)]
        taken: list[tuple[int, int]] = []
        for a, b, part in spans:
            inside = _free(max(a, start), min(b, end), taken)
            if inside:
                found[part] = found.get(part, 0) + inside
                left -= inside
                taken.append((max(a, start), min(b, end)))
        if left:
            found["other"] = found.get("other", 0) + left
        return found

    def _some(self, mean: int) -> int:
        return int(mean * self._random.choice((0.5, 0.8, 1.0, 1.2, 1.5))) if mean else 0

    def _loop(self) -> Process:
        plan = self.plan
        yield 3 * MS
        for epoch in range(plan.epochs):
            began = self.machine.now
            if plan.workers:
                yield from self._open(epoch, began)
            else:
                yield from self._open_inside(epoch)
            self.outside.append((began, self.machine.now, "startup"))
            for number in range(plan.steps):
                if number:
                    began = self.machine.now
                waited = self.machine.now
                made = self._made(epoch, number)
                yield from self._next(made)
                made.row |= {
                    "wait_start_ns": waited,
                    "wait_ns": self.machine.now - waited,
                    "step": number,
                }
                self.batches.append(made)
                self.waits.append((began, self.machine.now))
                yield self._some(plan.step)
            if not plan.persistent:
                self._stop()
        self._stop()

    def _stop(self) -> None:
        for queue in self._queues:
            queue.put(None)
        self._queues = []

    def _made(self, epoch: int, number: int) -> Made:
        if self.plan.workers:
            return self._asked[number]
        made = Made(epoch=epoch, number=number, stream=self._streams - 1)
        made.row = {"loader": 0, "stream": made.stream, "epoch": 0, "batch": number}
        return made

    def _open_inside(self, epoch: int) -> Process:
        yield self._some(self.plan.start)
        self._streams += 1
        self._note_epoch(self._streams - 1, 0, self.machine.now, 0)

    def _note_epoch(self, stream: int, epoch: int, began: int, took: int) -> None:
        about = {"loader": 0, "stream": stream, "epoch": epoch, "start_ns": began, "iter_ns": took}
        self._epochs.append(about | {"workers": self.plan.workers, "detail": "all"})

    def _open(self, epoch: int, began: int) -> Process:
        """The loader's ``__iter__``: workers start one after the other, then all are asked."""
        plan, machine = self.plan, self.machine
        if not self._queues:
            self._streams += 1
            self._results, self._data = Queue(machine), Queue(machine)
            self._pipe = Queue(machine)
            self._pipe.put("lock")
            for worker in range(plan.workers):
                yield 2 * MS  # to fork
                tasks, ready = Queue(machine), Queue(machine)
                self._queues.append(tasks)
                machine.resume(self._worker(worker, self._streams - 1, tasks, ready))
                machine.resume(self._feeder(ready))
            if plan.pinning:
                machine.resume(self._pinner(self._results, self._data))
        else:
            yield 1 * MS  # to tell workers of the new epoch
        of_stream = sum(one["stream"] == self._streams - 1 for one in self._epochs)
        self._asked: list[Made] = []
        self._order = self._handed()
        self._arrived: set[int] = set()
        self._epoch = of_stream
        for _ in range(min(plan.prefetch * plan.workers, plan.steps)):
            yield from self._ask()
        self._note_epoch(self._streams - 1, of_stream, began, machine.now - began)

    def _handed(self) -> list[int]:
        """Numbers of the batches in the order in which they are handed out."""
        numbers = list(range(self.plan.steps))
        order: list[int] = []
        for first in range(0, len(numbers), self.plan.handed):
            group = numbers[first : first + self.plan.handed]
            self._random.shuffle(group)
            order += group
        self._asked = [Made(epoch=0, number=number, stream=self._streams - 1) for number in numbers]
        return order

    def _ask(self) -> Process:
        if not self._order:
            return
        took = self._some(self.plan.sampler)
        began = self.machine.now
        yield took
        place = self.plan.steps - len(self._order)
        made = self._asked[self._order.pop(0)]
        made.worker = place % self.plan.workers
        made.row = {
            "loader": 0,
            "stream": made.stream,
            "epoch": self._epoch,
            "batch": made.number,
            "worker": made.worker,
            "sampler_start_ns": began,
            "sampler_ns": took,
        }
        self._queues[made.worker].put(made)

    def _next(self, made: Made) -> Process:
        """The loader's ``__next__`` until it has this batch, and the next index is handed out."""
        if not self.plan.workers:
            yield self._some(self.plan.sampler)
            yield from self._fetch(made)
            return
        while made.number not in self._arrived:
            got = yield self._data if self.plan.pinning else self._results
            if not self.plan.pinning:
                yield from self._receive(got)
            self._arrived.add(got.number)
        handed = self.machine.now
        yield from self._ask()
        made.note(handed, self.machine.now, "other")

    def _worker(self, worker: int, stream: int, tasks: Queue, ready: Queue) -> Process:
        began = self.machine.now
        yield self._some(self.plan.start)
        about = {"loader": 0, "stream": stream, "worker": worker, "pid": 1000 + worker}
        self._workers.append(
            about | {"created_ns": began, "entered_ns": began, "ready_ns": self.machine.now}
        )
        started = self.machine.now
        busy: list[tuple[int, int]] = []
        while (made := (yield tasks)) is not None:
            made.note(began, started, "startup")
            for start, end in busy:
                made.note(start, end, "starvation")
            start = self.machine.now
            yield from self._fetch(made)
            busy.append((start, self.machine.now))
            ready.put(made)
        ready.put(None)

    def _fetch(self, made: Made) -> Process:
        plan, began = self.plan, self.machine.now
        sums = dict.fromkeys(("wall", "cpu", "read", "delay"), 0)
        looked = dict.fromkeys(("wall", "cpu", "read", "delay"), 0)
        many = 0
        for _ in range(plan.samples):
            one = dict.fromkeys(sums, 0)
            for part, mean, column in (
                ("storage", plan.read, "read"),
                ("decode", plan.decode, "cpu"),
                ("oversubscription", plan.delay, "delay"),
                ("other", plan.block, "wall"),
            ):
                took = self._some(mean)
                start = self.machine.now
                yield took
                made.note(start, self.machine.now, part)
                one[column] += took
                if column != "wall":
                    one["wall"] += took
            seen = self._random.random() < plan.looked
            many += seen
            for name, ns in one.items():
                sums[name] += ns
                looked[name] += ns * seen
        collated = self.machine.now
        took = self._some(plan.collate)
        yield took
        made.note(collated, self.machine.now, "collate")
        made.row |= {
            "samples": plan.samples,
            "failed": False,
            "fetch_start_ns": began,
            "fetch_ns": self.machine.now - began,
            "fetch_cpu_ns": sums["cpu"] + took,
            "fetch_run_delay_ns": sums["delay"],
            "samples_ns": sums["wall"],
            "samples_cpu_ns": sums["cpu"],
            "collate_start_ns": collated,
            "collate_ns": took,
            "collate_cpu_ns": took,
            "looked_samples": many,
        }
        if many:
            made.row |= {
                "looked_ns": looked["wall"],
                "looked_cpu_ns": looked["cpu"],
                "looked_run_delay_ns": looked["delay"],
                "looked_read_ns": looked["read"],
                "looked_read_cpu_ns": 0,
            }

    def _feeder(self, ready: Queue) -> Process:
        """The thread of a worker that pickles batches and writes them to the pipe."""
        while (made := (yield ready)) is not None:
            made.row["serialize_start_ns"] = self.machine.now
            yield self._some(self.plan.send)
            lock = yield self._pipe
            yield self._some(self.plan.send)
            self._pipe.put(lock)
            self._results.put(made)

    def _receive(self, made: Made) -> Process:
        made.row["ready_ns"] = self.machine.now
        yield self._some(self.plan.unpickle)
        fetched = made.row["fetch_start_ns"] + made.row["fetch_ns"]
        made.row["received_ns"] = self.machine.now
        made.note(fetched, self.machine.now, "transfer")

    def _pinner(self, results: Queue, data: Queue) -> Process:
        """The pinning thread: it also unpickles, one batch after the other."""
        busy: list[tuple[int, int]] = []
        while True:
            made = yield results
            for start, end in busy:
                made.note(start, end, "pin")
            yield from self._receive(made)
            start, took = self.machine.now, self._some(self.plan.pin)
            made.row |= {"pin_start_ns": start, "pin_ns": took}
            yield took
            made.note(start, self.machine.now, "pin")
            busy.append((start, self.machine.now))
            data.put(made)


def table(rows: list[dict[str, Any]], columns: dict[str, str]) -> pd.DataFrame:
    """Rows as a table with the columns of a file; what a row lacks is missing."""
    kinds = {"bool": "boolean", "string": "string", "items": object, "float64": "Float64"}
    frame = pd.DataFrame(rows, columns=list(columns))
    return frame.astype({name: kinds.get(kind, "Int64") for name, kind in columns.items()})


def _free(start: int, end: int, taken: list[tuple[int, int]]) -> int:
    """How much of a stretch no earlier one has."""
    pieces = [(start, end)] if end > start else []
    for a, b in taken:
        pieces = [
            piece
            for lo, hi in pieces
            for piece in ((lo, min(hi, a)), (max(lo, b), hi))
            if piece[1] > piece[0]
        ]
    return sum(hi - lo for lo, hi in pieces)
