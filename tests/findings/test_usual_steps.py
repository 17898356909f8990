"""One slow step among many is told apart; it makes no headline, and no other step's gain."""

import pytest

from tests.findings.facts import stages
from tests.findings.test_input_bound import MS, device, fired, measured
from workbench.findings.finding import Facts
from workbench.findings.input_bound import input_bound
from workbench.findings.sample_cost import sample_cost
from workbench.findings.usual_steps import usual


def restarted(usual_ms: float, *, workers: int = 2, restart_ms: float = 460) -> Facts:
    """39 steps of 4 ms and their wait, and one that waits 460 ms for an epoch to begin."""
    waits = [usual_ms] * 20 + [restart_ms] + [usual_ms] * 19
    return Facts(
        step_ns=tuple(int((4 + ms) * MS) for ms in waits),
        input_ns=tuple(int(ms * MS) for ms in waits),
        effective={"workers": workers},
    )


def test_a_restart_is_no_headline() -> None:
    """The mean step is 4 + 460/40 = 15.5 ms, of which 11.5 (74 %) are waiting, all in one step."""
    finding = fired(restarted(0))
    assert finding.severity == "info"
    assert finding.title == (
        "1 of 40 steps waits 460 ms for data, 74 % of all time; "
        "the others wait for 0.0 % of theirs."
    )
    assert finding.saving_ns_per_step_at_most == pytest.approx(11.5 * MS)
    assert finding.speedup_at_most == pytest.approx(15.5 / 4)


def test_the_usual_steps_are_judged_without_it() -> None:
    """The others wait 1 ms of 5: 20 %, and can be 5 / 4 times as fast, not 16.5 / 4."""
    finding = fired(restarted(1))
    assert finding.share_of_window == pytest.approx(0.2)
    assert finding.saving_ns_per_step_at_most == 1 * MS
    assert finding.speedup_at_most == pytest.approx(5 / 4)
    assert "on average 1.00 ms of 5.00 ms, without one step that waits 460 ms" in finding.title
    assert finding.evidence["slow_steps_left_out"] == 1


def test_workers_that_bring_their_batches_together_make_every_nth_step_wait() -> None:
    """Of 16 workers' rounds one step in 16 waits: two or three of 40, and that is the loader."""
    waits = [0] * 40
    waits[10], waits[26] = 100 * MS, 100 * MS
    facts = Facts(
        step_ns=tuple(4 * MS + ns for ns in waits),
        input_ns=tuple(waits),
        effective={"workers": 16},
    )
    assert usual(facts)[1] is None
    assert fired(facts).share_of_window == pytest.approx(200 / 360)


def test_equal_steps_have_none_that_stands_out() -> None:
    facts = measured(100, 60)
    assert usual(facts) == (facts, None)


def test_the_grade_is_no_higher_than_what_a_free_loader_saves() -> None:
    """Steps of 100 ms wait 60; on batches at hand they take 92: 8 % can go, a note."""
    finding = fired(measured(100, 60, replay_step_ns=(92 * MS,) * 6, effective={"workers": 2}))
    assert finding.saving_ns_per_step_at_most == 8 * MS
    assert finding.severity == "info"


def test_a_gain_beyond_the_wait_says_why() -> None:
    """Measured: 100 ms, 60 of them waiting, and 30 on batches at hand. Replayed: 45 for a 40."""
    slowed = fired(measured(100, 60, replay_step_ns=(30 * MS,) * 6, effective={"workers": 2}))
    assert "a step on batches at hand takes 30.0 ms" in slowed.advice
    traced = Facts(
        trace_steps=10,
        devices=(device(window_ms=1000, busy_ms=500, input_ms=400),),
        bounds_ns={"input": 45.0 * MS},
    )
    ahead = fired(traced)
    assert ahead.saving_ns_per_step_at_most == 45 * MS
    assert "the host runs further ahead" in ahead.advice
    assert "above the wait" not in fired(measured(100, 60)).advice


def test_few_steps_that_wait_little_are_silent() -> None:
    """10 ms in one of 40 steps of 4 ms: 10 of 170, 5.9 %; 5 ms are 3 %."""
    assert input_bound(restarted(0, restart_ms=10)) is not None
    assert input_bound(restarted(0, restart_ms=5)) is None


def test_work_on_samples_is_a_gain_of_the_usual_step_too() -> None:
    """38 steps of 11 ms make a batch for 10; two more wait 657 ms while garbage is collected.

    Without work on samples the usual step is 1 ms: 11 times as fast. Against the mean of all 40,
    43.4 ms, the same 10 ms would be 1.3 times, and a loop measured by its median does better.
    """
    waits = [10] * 20 + [657] + [10] * 18 + [657]
    facts = Facts(
        step_ns=tuple((1 + ms) * MS for ms in waits),
        input_ns=tuple(ms * MS for ms in waits),
        loader_stages=stages(
            batches=40,
            samples=320,
            fetch_ns=400 * MS,
            fetch_cpu_ns=400 * MS,
            batch_ns=10.0 * MS,
            samples_ns=400 * MS,
            collate_ns=0,
        ),
        stalls_ns={"decode": 1694 * MS, "other": 0},
        effective={"workers": 0, "samples_per_step": 8},
    )
    finding = sample_cost(facts)
    assert finding is not None
    assert finding.share_of_window == pytest.approx(10 / 11)
    assert finding.saving_ns_per_step_at_most == 10 * MS
    assert finding.speedup_at_most == pytest.approx(11)
