"""One fault in a loop that otherwise keeps its device busy: without it, its idle time is gone.

The same loop runs twice, all its times fixed, with the fault and without. What the device idles
more with it must be what the analysis blames on it.
"""

from collections.abc import Iterable
from math import sqrt

import pytest

from tests.simulator.judging import Simulated, answered
from tests.simulator.loop import Loop
from tests.simulator.machine import Draw, Machine
from tests.simulator.plan import MS, US, Plan
from tests.simulator.truth import truths
from tests.simulator.writing import ERAS, Flaws, document
from workbench.analysis.idle import Idle


class Steady(Draw):
    """Every time is the middle of its range, and nothing happens by chance."""

    def ns(self, low: float, high: float) -> int:
        return round(sqrt(low * high))

    def chance(self, share: float) -> bool:
        return share >= 1


class Struck(Loop):
    """Faults strike once, in the second step."""

    def __init__(self, machine: Machine, plan: Plan, faults: Iterable[str]) -> None:
        super().__init__(machine, plan)
        self.faults = set(faults)

    def happens(self, fault: str, share: float = 0.5) -> bool:
        strikes = fault in self.faults and self.sequence > self.plan.layers
        self.faults -= {fault} if strikes else set()
        return strikes


def idle_with(*faults: str, length: float = 20 * MS) -> Idle:
    """Kernels of 100 us that the host launches every 20 us: it is ahead by 1 to 3 ms."""
    machine = Machine(Steady(0), latency=2_000, spacing=1_000)
    plan = Plan(
        steps=4, layers=8, kernel=(100 * US, 100 * US), operator=(10 * US, 10 * US),
        python=(2 * US, 2 * US), faults=dict.fromkeys(faults, (length, length)),
        stacks=False, collector_seen=True, user_input=False, marks=True,
    )  # fmt: skip
    Struck(machine, plan, faults).run()
    era, flaws = ERAS[0], Flaws()
    return answered(
        Simulated(
            seed=0, era=era, plan=plan, flaws=flaws,
            trace=document(machine, era, flaws), truth=truths(machine),
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("input", "input"),
        ("logging", "host_other"),
        ("python", "host_other"),
        ("allocation", "allocation"),
        ("free", "allocation"),
        ("first launch", "kernel_loading"),
        ("module load", "kernel_loading"),
        ("compile", "compilation"),
        ("capture", "graph_capture"),
        ("profiler", "profiler"),
        ("collector", "garbage_collection"),
        ("unrecorded work", "unknown"),
    ],
)
def test_removing_the_fault_removes_what_is_blamed_on_it(fault: str, cause: str) -> None:
    """Within 5 %: the host also needs some microseconds to launch again."""
    struck, healthy = idle_with(fault), idle_with()
    saved = struck.total - healthy.total
    blamed = (struck.by_cause[cause] or 0) - (healthy.by_cause[cause] or 0)
    assert saved > 5 * MS
    assert blamed == pytest.approx(saved, rel=0.05)


def test_a_wait_is_blamed_for_what_the_host_could_have_done_meanwhile() -> None:
    """Reading the loss before 20 ms of logging costs the 1 to 3 ms that the host was ahead by."""
    both, logging = idle_with("item", "logging"), idle_with("logging")
    saved = both.total - logging.total
    assert 1 * MS < saved < 4 * MS
    assert both.by_cause["synchronization"] == pytest.approx(saved, rel=0.05)


def test_a_wait_that_nothing_follows_costs_next_to_nothing() -> None:
    """The same read without logging: the device lacks work until the next launch only."""
    struck, healthy = idle_with("item"), idle_with()
    saved = struck.total - healthy.total
    assert saved < 0.1 * MS
    assert (struck.by_cause["synchronization"] or 0) <= saved


def test_a_collective_beside_the_loop_is_no_idle_time() -> None:
    struck, healthy = idle_with("collective"), idle_with()
    assert struck.total <= healthy.total
