"""What gates of others did wrong, fed to this one."""

import itertools

import numpy as np
import pytest

from tests.gate.sides import side, timed
from workbench.gate.budget import budget_of
from workbench.gate.gate import gate_sides
from workbench.gate.html import gate_page
from workbench.gate.sample import Sample

WORKLOADS = 50
COMMITS = 100


def many(rng: np.random.Generator, factor: float = 1.0, noise: float = 0.08):
    return {f"w{n}": timed(rng, 10 * factor, noise) for n in range(WORKLOADS)}


def test_fifty_noisy_metrics_do_not_fail_a_commit_that_changed_nothing():
    """Adjacent runs of others shared 0 to 4 of 42 to 72 alerts: their alerts were chance."""
    rng = np.random.default_rng(8)
    sides = [many(rng) for _ in range(COMMITS + 1)]
    failed = [bool(gate_sides(base, head).failed) for base, head in itertools.pairwise(sides)]
    assert len(failed) == COMMITS
    assert sum(failed) <= COMMITS // 100


def test_everything_slower_together_is_the_machine_and_not_fifty_regressions():
    rng = np.random.default_rng(9)
    found = gate_sides(many(rng), many(rng, 1.15, 0.02))
    assert found.common is not None
    assert found.common.change == pytest.approx(0.15, abs=0.05)
    assert not found.failed
    assert found.verdict == "cannot_tell"
    assert "all 50 workloads moved together by +1" in found.sentence


def test_one_that_became_slower_on_a_changed_machine_still_fails():
    rng = np.random.default_rng(10)
    base, head = many(rng, 1.0, 0.02), many(rng, 1.15, 0.02)
    head["w7"] = timed(rng, 10 * 1.15 * 1.4, 0.02)
    assert [each.workload for each in gate_sides(base, head).failed] == ["w7"]


def test_what_took_turns_cannot_be_the_machine():
    rng = np.random.default_rng(11)
    base = {f"w{n}": timed(rng, 10, turns="t") for n in range(6)}
    head = {f"w{n}": timed(rng, 11.5, turns="t") for n in range(6)}
    assert len(gate_sides(base, head).failed) == 6


def test_one_wild_value_fails_no_limit():
    """Five empty steps of 1.9 to 3.2 µs and one of 533 µs against a limit of 500 µs."""
    steps = (1900.0, 2200.0, 2500.0, 2800.0, 3200.0, 533_000.0)
    budget = budget_of({"step_time": {"at_most": "500 us"}})
    found = gate_sides({}, {"": side("r", step_time=Sample(blocks=(steps,)))}, budget=budget)
    assert found.verdict == "pass"


@pytest.mark.parametrize("blocks", [1, 8])
def test_half_as_much_again_of_next_to_nothing_is_nothing(blocks: int):
    """0.002 ms became 0.003 ms: 50 % more, and one microsecond."""
    base, head = (
        side("r", step_time=Sample(blocks=tuple((ns, ns * 1.01, ns * 0.99) for _ in range(blocks))))
        for ns in (2000.0, 3000.0)
    )
    assert gate_sides({"": base}, {"": head}).verdict == "pass"


HOSTILE = "<img src=x onerror=alert(1)>"


def test_the_page_of_a_gate_has_every_verdict_and_no_script():
    rng = np.random.default_rng(12)
    base = {"a": timed(rng, 10), HOSTILE: timed(rng, 10)}
    head = {"a": timed(rng, 10), HOSTILE: timed(rng, 20)}
    html = gate_page(gate_sides(base, head))
    assert "✗ FAIL" in html
    assert "✓ pass" in html
    assert html.count("<h1>") == 1
    assert "<script" not in html
    assert HOSTILE not in html
    assert "&lt;img src=x" in html
