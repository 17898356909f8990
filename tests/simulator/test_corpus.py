"""Random loops of a simulated host and device: is their idle time explained as it came about?

The causes are known from the script (``truth``), whatever the analysis thinks; ``loop`` holds the
faults, ``writing`` the eras. ``docs/attribution.md`` shows the table of all 200.
"""

from pathlib import Path

import pytest

from tests.simulator.judging import Judgement, answered, judge, simulated

RIGHT, WRONG = 0.95, 0.02
TABLE = Path(__file__).resolve().parents[2] / "docs" / "attribution.md"


def judged_together(seeds: range) -> Judgement:
    found = Judgement()
    for seed in seeds:
        made = simulated(seed)
        idle = answered(made)
        assert sum(ns or 0 for ns in idle.by_cause.values()) == idle.total, seed
        found.add(judge(made, idle))
    return found


def test_forty_random_loops() -> None:
    found = judged_together(range(1_000, 1_040))
    assert found.share("right") >= RIGHT
    assert found.share("wrong") <= WRONG


@pytest.mark.slow
def test_two_hundred_random_loops() -> None:
    """Those of the table; what is right only by definition does not count as right."""
    found = judged_together(range(200))
    assert found.share("right") >= RIGHT
    assert found.share("wrong") <= WRONG
    told = TABLE.read_text(encoding="utf-8")
    for verdict in ("right", "by definition", "unknown", "wrong"):
        row = f"| {verdict} | {100 * found.share(verdict):.2f} |"
        assert row in told, f"{TABLE.name} is not of today: run benchmarks/idle_causes.py"


@pytest.mark.slow
def test_each_loop_counts_the_same() -> None:
    """Long faults must not hide a launch-bound loop with its short gaps."""
    single = [judged_together(range(seed, seed + 1)) for seed in range(200)]
    assert sum(each.share("right") for each in single) / 200 >= RIGHT
    assert sum(each.share("wrong") for each in single) / 200 <= WRONG


@pytest.mark.slow
def test_every_cause_occurs_and_is_mostly_found() -> None:
    """No cause may hide behind another one's many milliseconds."""
    found = judged_together(range(200))
    for cause in sorted({cause for cause, _, _ in found.cells}):
        own = Judgement()
        own.add((cell, ns) for cell, ns in found.cells.items() if cell[0] == cause)
        assert own.share("right") + own.share("by definition") >= 0.9, cause


def test_a_seed_gives_the_same_trace_again() -> None:
    assert simulated(3).trace == simulated(3).trace
