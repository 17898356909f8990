"""What a gate says of sides whose truth is known: pass, fail, or cannot tell."""

import numpy as np
import pytest

from tests.gate.sides import MS, side, timed, times
from workbench.errors import GateError
from workbench.gate import Budget, Gate, gate
from workbench.gate.budget import budget_of
from workbench.gate.gate import gate_sides
from workbench.gate.judging import Judged
from workbench.gate.sample import Sample, Side
from workbench.gate.testing import holm


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def one(base: Side, head: Side, budget: Budget | None = None) -> Gate:
    return gate_sides({"": base}, {"": head}, budget=budget)


def of(found: Gate, name: str) -> Judged:
    return next(each for each in found.judged if each.metric.name == name)


def test_the_same_thing_twice_passes():
    # Blocks of 10 steps that scatter by 2 %: medians by 0.8 %, means of eight by 0.28 %.
    found = one(timed(rng(1), 10), timed(rng(2), 10))
    assert found.verdict == "pass"
    assert found.exit_code() == found.exit_code(strict=True) == 0
    step = of(found, "step_time")
    assert step.base == pytest.approx(10 * MS, rel=0.02)
    assert step.low is not None
    assert step.high is not None
    assert step.low <= 0 <= step.high or abs(step.change or 1) < 0.01


def test_a_slow_down_of_fifteen_percent_fails_and_is_told_with_its_interval():
    turns = "a mark"
    found = one(timed(rng(1), 10, turns=turns), timed(rng(2), 11.5, turns=turns))
    step = of(found, "step_time")
    assert found.interleaved
    assert step.verdict == "fail"
    assert found.exit_code() == 1
    assert step.change == pytest.approx(0.15, abs=0.02)
    assert step.low is not None
    assert step.high is not None
    assert step.low < 0.15 < step.high
    assert step.chance is not None
    assert step.chance < 0.01
    assert "step_time +1" in found.sentence


def test_a_faster_head_passes():
    assert one(timed(rng(1), 10), timed(rng(2), 7)).verdict == "pass"


def test_noise_above_the_limit_is_no_verdict_and_the_smallest_effect_is_told():
    found = one(timed(rng(3), 10, 0.6), timed(rng(4), 11, 0.6))
    step = of(found, "step_time")
    assert found.verdict == step.verdict == "cannot_tell"
    assert found.exit_code() == 0
    assert found.exit_code(strict=True) == 3
    assert step.smallest_effect is not None
    assert step.smallest_effect > 0.15
    assert step.reason


def test_a_gate_is_never_tighter_than_the_noise():
    """Asked for 0.1 %, on a machine whose own halves differ by 3 %: no pass, and that is said."""
    base = [[10.0 * MS] * 5] * 4 + [[10.3 * MS] * 5] * 4
    side_a = side("a", "turns", step_time=Sample(blocks=tuple(map(tuple, base))))
    side_b = side("b", "turns", step_time=Sample(blocks=tuple(map(tuple, base))))
    found = one(side_a, side_b, budget_of({"step_time": {"allow": "0.1 %"}}))
    step = of(found, "step_time")
    assert step.noise == pytest.approx(0.03)  # 10.3 / 10
    assert step.verdict == "cannot_tell"
    assert "tighter than the noise" in (step.reason or "")


def test_sides_measured_one_after_the_other_may_differ_by_what_each_drifts_within_itself():
    """Both drift by 6 % within themselves: 8 % between them is no proof, in turns it would be."""
    first = [[10.0 * MS + n * 1e3] * 5 for n in range(4)]
    later = [[10.6 * MS + n * 1e3] * 5 for n in range(4)]
    base = tuple(map(tuple, first + later))
    head = tuple(tuple(ns * 1.12 for ns in block) for block in base)
    apart = one(side("a", step_time=Sample(blocks=base)), side("b", step_time=Sample(blocks=head)))
    assert of(apart, "step_time").verdict == "cannot_tell"


def test_few_steps_tell_nothing():
    short = Sample(blocks=((10 * MS,) * 4,))
    found = one(side("a", step_time=short), side("b", step_time=Sample(blocks=((14 * MS,) * 4,))))
    assert of(found, "step_time").verdict == "cannot_tell"
    assert "too few" in (of(found, "step_time").reason or "")


def test_throughput_is_worse_when_it_falls_and_is_told_as_it_falls():
    base = tuple(tuple(1e9 / ns for ns in b) for b in times(rng(1), 10, 0.02))
    head = tuple(tuple(1e9 / ns for ns in b) for b in times(rng(2), 12, 0.02))
    found = one(
        side("a", "t", throughput=Sample(blocks=base)),
        side("b", "t", throughput=Sample(blocks=head)),
    )
    assert of(found, "throughput").verdict == "fail"
    assert "throughput -1" in found.sentence  # 10 / 12 is 17 % less


def test_parts_of_a_step_are_judged_by_their_share_of_it():
    """Input wait grows from 1 ms to 3 ms of a step of 10 ms: 20 % of the step, 5 % are allowed."""
    draw = rng(5)
    waits = [tuple(float(v) for v in m * MS + 1e5 * draw.standard_normal(80)) for m in (1, 3)]
    sides = [
        side(name, "t", exposed_input=Sample(blocks=(tuple(wait[:40]), tuple(wait[40:])), step=1e7))
        for name, wait in zip("ab", waits, strict=True)
    ]
    wait = of(one(*sides), "exposed_input")
    assert wait.verdict == "fail"
    assert wait.change == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [(120, 120, "pass"), (120, 121, "fail"), (120, 90, "pass"), (0, 1, "fail"), (0, 0, "pass")],
)
def test_counts_gate_tightly(base: int, head: int, verdict: str):
    sides = [
        side(name, kernels_per_step=Sample(values=(float(n),) * 4))
        for name, n in (("a", base), ("b", head))
    ]
    assert of(one(*sides), "kernels_per_step").verdict == verdict


def test_a_count_that_differs_from_step_to_step_is_given_that_much():
    """Steps of the base launch 100 to 104 kernels: 104 in the head is nothing new, 110 is."""
    base = side("a", kernels_per_step=Sample(values=(100.0, 104.0, 100.0, 100.0)))
    within = side("b", kernels_per_step=Sample(values=(104.0,) * 4))
    beyond = side("b", kernels_per_step=Sample(values=(110.0,) * 4))
    assert of(one(base, within), "kernels_per_step").verdict == "pass"
    assert of(one(base, beyond), "kernels_per_step").verdict == "fail"


def test_single_numbers_must_differ_by_more_than_such_numbers_do():
    """Memory is allowed 5 % more and taken to differ by 5 %: 8 % more cannot be told, 20 % is."""
    verdicts = [
        of(
            one(
                side("a", peak_memory=Sample(values=(1e9,))),
                side("b", peak_memory=Sample(values=(more,))),
            ),
            "peak_memory",
        ).verdict
        for more in (1.04e9, 1.08e9, 1.2e9)
    ]
    assert verdicts == ["pass", "cannot_tell", "fail"]


@pytest.mark.parametrize(
    ("runs", "head", "verdict"),
    [
        ((0, 0), 1.4e9, "fail"),
        ((1, 1), 1.4e9, "fail"),
        ((None, 1), 1.4e9, "fail"),
        ((0, 1), 1.4e9, "cannot_tell"),
        ((1, 0), 0.6e9, "cannot_tell"),
        ((0, 1), 1.01e9, "pass"),
    ],
)
def test_memory_of_a_process_that_held_other_runs_is_no_verdict(
    runs: tuple[int | None, int | None], head: float, verdict: str
):
    """A process keeps what an earlier Run took: 40 % more is then nobody's regression."""
    base, new = (
        side(name, peak_memory=Sample(values=(value,), runs_before=before))
        for name, value, before in (("a", 1e9, runs[0]), ("b", head, runs[1]))
    )
    found = of(one(base, new), "peak_memory")
    assert found.verdict == verdict
    assert ("a process of its own" in (found.reason or "")) is (verdict == "cannot_tell")


def test_an_absolute_limit_needs_no_baseline():
    budget = budget_of({"step_time": {"at_most": "12 ms"}, "throughput": {"off": True}})
    verdicts = [
        gate_sides({}, {"": timed(rng(7), middle)}, budget=budget).verdict for middle in (10, 14)
    ]
    assert verdicts == ["pass", "fail"]


def test_holm_multiplies_the_smallest_by_all_and_never_falls():
    # 0.01 × 3, 0.02 × 2, 0.9 × 1; a later one is at least the one before it.
    assert holm({"a": 0.02, "b": 0.01, "c": 0.9}) == pytest.approx({"b": 0.03, "a": 0.04, "c": 0.9})
    assert holm({"a": 0.01, "b": 0.011}) == pytest.approx({"a": 0.02, "b": 0.02})


def test_nothing_to_judge_is_an_error_that_says_what_to_give():
    with pytest.raises(GateError, match="needs a head"):
        gate()
    with pytest.raises(GateError, match=r"--base RUN, or a budget with at_most"):
        gate(head="somewhere")
    with pytest.raises(GateError, match="no workload in common"):
        gate_sides({"a": timed(rng(), 1)}, {"b": timed(rng(), 1)})
