"""Lays the answer of the analysis over the truth."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.simulator.loop import Loop
from tests.simulator.machine import Draw, Machine
from tests.simulator.plan import Plan, drawn_plan
from tests.simulator.truth import Truth, truths
from tests.simulator.writing import ERAS, Era, Flaws, document
from workbench.analysis.causes import CAUSES
from workbench.analysis.idle import Idle, attribute_idle
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps
from workbench.analysis.window import recording
from workbench.trace import read

Cell = tuple[str, str, str]
"""True cause, what docs/metrics.md calls it, what was answered."""


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """One random loop: its trace, and why its device was idle."""

    seed: int
    era: Era
    plan: Plan
    flaws: Flaws
    trace: bytes
    truth: list[Truth]


@dataclass(kw_only=True)
class Judgement:
    """Nanoseconds of idle time by what is true and what was answered."""

    cells: Counter[Cell] = field(default_factory=Counter)

    def add(self, cells: Iterable[tuple[Cell, int]]) -> None:
        """Count more of them."""
        for cell, ns in cells:
            self.cells[cell] += ns

    @property
    def total(self) -> int:
        """All idle time."""
        return sum(self.cells.values())

    def share(self, verdict: str) -> float:
        """Share of the idle time that is right, by definition, unknown or wrong."""
        found = sum(ns for cell, ns in self.cells.items() if judged(cell) == verdict)
        return found / self.total


def judged(cell: Cell) -> str:
    """What an answer is: ``unknown`` is neither right nor wrong unless nobody can know."""
    cause, definition, answer = cell
    if answer == cause:
        return "right"
    if answer == definition:
        return "by definition"
    return "unknown" if answer == "unknown" else "wrong"


def simulated(seed: int) -> Simulated:
    """A random loop in a random era, with a recording that may have flaws of its own."""
    draw = Draw(seed)
    era = draw.choice(ERAS)
    draw.tick = era.tick
    stacks = era.stacks and draw.chance(0.4)
    plan = drawn_plan(draw, stacks=stacks, old=era.old)
    machine = Machine(draw, latency=2_000, spacing=1_000)
    Loop(machine, plan).run()
    works = machine.device.works
    behind = draw.ns(5_000, 500_000) if draw.chance(0.15) else 0
    lost = (
        frozenset(w.call for w in works if draw.chance(0.02)) if draw.chance(0.1) else frozenset()
    )
    for work in works:
        work.launched = work.call not in lost
    flaws = Flaws(behind=behind, lost=lost)
    return Simulated(
        seed=seed, era=era, plan=plan, flaws=flaws,
        trace=document(machine, era, flaws), truth=truths(machine),
    )  # fmt: skip


def answered(made: Simulated) -> Idle:
    """What the analysis says about its recording."""
    trace = read(made.trace)
    launches = join_launches(trace)
    span = recording(trace, 0)
    assert span is not None
    return attribute_idle(trace, 0, span, find_steps(trace, launches), launches)


def judge(made: Simulated, idle: Idle) -> list[tuple[Cell, int]]:
    """The idle time of one trace, cut at every change of truth or answer."""
    pieces = idle.pieces
    # Both begin with the first recorded work; the answer counts from the trace's first event.
    begins = int(pieces.start[0]) - made.truth[0].start if len(pieces) else 0
    found: list[tuple[Cell, int]] = []
    truth = iter(made.truth)
    now = next(truth, None)
    for start, end, code in zip(
        (pieces.start - begins).tolist(), (pieces.end - begins).tolist(), pieces.cause.tolist(),
        strict=True,
    ):  # fmt: skip
        at = start
        while at < end:
            assert now is not None, "the answer has more idle time than there was"
            if now.end <= at:
                now = next(truth, None)
                continue
            assert now.start <= at, "the answer has idle time where the device worked"
            until = min(end, now.end)
            found.append(((now.cause, now.definition, CAUSES[code]), until - at))
            at = until
    total = sum(each.end - each.start for each in made.truth)
    assert sum(ns for _, ns in found) == total, "the answer lacks idle time"
    return found
