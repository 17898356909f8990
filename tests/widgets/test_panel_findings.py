"""What the panel shows of bursts, findings, trials and changes."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.widgets.kernel import FINDING, Kernel
from tests.widgets.standin import change, done, effect, recorded
from workbench.settings import Settings

pytestmark = pytest.mark.slow


def test_a_burst_shows_its_findings_worst_first_with_evidence_and_bound(kernel: Kernel):
    kernel.page("burst")
    burst = kernel.session.state.bursts[0]
    assert kernel.section("findings")["rows"] == []
    assert "waits" in kernel.section("status")["burst"]

    burst.status, burst.run, burst.findings = "done", recorded("b1"), (FINDING,)
    row = kernel.section("findings")["rows"][0]
    assert row["mark"] == "■ critical"
    assert row["evidence"] == [["input share", "39 %"]]
    assert row["bound"] == "at most 7.00 ms a step"
    assert row["setting"] == "wb.Settings(workers=2)"
    assert row["can_try"]


def test_a_burst_that_fails_says_why(kernel: Kernel):
    kernel.page("burst")
    burst = kernel.session.state.bursts[0]
    burst.status, burst.error = "failed", "the disk is full"
    for callback in kernel.session._callbacks:
        callback("burst")

    notice = kernel.section("status")["notice"]
    assert notice == {"kind": "error", "text": "The burst failed: the disk is full"}
    assert kernel.section("status")["burst"] is None


def test_try_it_verifies_the_finding_and_keep_applies_what_was_measured(kernel: Kernel):
    run = recorded("b1")
    kernel.session.become(bursts=(done(run, FINDING),))
    kernel.page("verify", finding="0")
    assert kernel.session.asked[-1] == ("verify", FINDING)
    section = kernel.section("trial")
    assert section["running"]
    assert section["what"] == "workers 2"
    assert "no finished trial" in kernel.page("keep")["error"]

    measured = SimpleNamespace(
        sentence="▲ workers=2: 31 % (28–34) less time a step: keep it.",
        advice="keep",
        change=effect(0.69, 0.66, 0.72),
        parity=SimpleNamespace(reason="the losses agree"),
        bound=SimpleNamespace(saving=0.36),
        settings=Settings(workers=2),
    )
    trial = kernel.session.state.trial
    trial.status, trial.verification = "done", measured
    told = kernel.section("trial")
    assert told["gain"] == "▲ 31 % (28–34) less time"
    assert told["parity"] == "the losses agree"
    assert told["kept"] is None

    kernel.page("keep")
    assert kernel.session.asked[-1] == ("apply", Settings(workers=2))
    assert kernel.section("trial")["kept"] is True


def test_a_burst_says_which_steps_its_numbers_are_of(kernel: Kernel):
    """Never of those under the profiler, which take 40 ms instead of 13 to 15."""
    burst = done(recorded("b"), FINDING)
    kernel.session.become(bursts=(burst,))

    assert kernel.section("findings")["measured"] == (
        "From 10 steps under torch.profiler. Step times of record are of 3 steps without it, "
        "median 14.0 ms; the charts leave recorded steps out."
    )
    burst.run.record.timings.step_ns.clear()
    kernel.session.become(bursts=(done(burst.run, FINDING),))
    kernel.desk._findings = None
    assert "none was measured without it" in kernel.section("findings")["measured"]


def test_findings_of_other_settings_than_those_in_force_say_so(kernel: Kernel):
    run = recorded("b1", workers=2)
    kernel.session.become(bursts=(done(run, FINDING),))
    told = "Recorded under other settings (workers 2) than those in force now (as yours)."
    assert kernel.section("findings")["under"] == told

    kernel.session.become(settings=Settings(workers=2))
    assert kernel.section("findings")["under"] is None


@pytest.mark.parametrize(("minutes", "seconds"), [(2, 120.0), (0.5, 30.0), (None, None)])
def test_bursts_come_every_so_many_minutes(kernel: Kernel, minutes: Any, seconds: Any):
    kernel.page("bursts", watch_changes=True, burst_every_minutes=minutes)

    assert kernel.session.burst_every_s == seconds
    assert kernel.session.watch_changes


@pytest.mark.parametrize("minutes", [0, -3, "no number of"])
def test_an_interval_that_is_none_is_refused_and_said(kernel: Kernel, minutes: Any):
    kernel.session.burst_every_s = 60.0
    answer = kernel.page("bursts", watch_changes=False, burst_every_minutes=minutes)

    assert "give a number above 0" in answer["error"]
    assert kernel.session.burst_every_s == 60.0


def test_there_must_be_a_trial_to_cancel(kernel: Kernel):
    assert "Try it" in kernel.page("cancel")["error"]


def test_a_finding_that_a_newer_burst_replaced_says_so(kernel: Kernel):
    assert "newer burst" in kernel.page("verify", finding="7")["error"]


def test_a_change_is_shown_with_medians_and_its_interval_beside_its_switch(kernel: Kernel):
    settings = Settings(workers=2)
    told = {"effect": effect(0.5, 0.48, 0.53), "before_ns": 20e6, "after_ns": 10e6}
    kernel.session.changes = (
        change(1, 100, Settings(), settings, **told),
        change(2, 150, settings, Settings(workers=4), error="out of memory", applied_ns=None),
        change(3, 200, settings, Settings(workers=2, batch_size=64), per="sample", **told),
    )
    told = kernel.section("changes")
    rows = told["rows"]

    assert rows[0]["text"] == "workers as yours → 2"
    assert (rows[0]["before"], rows[0]["after"]) == ("20.0 ms", "10.0 ms")
    assert rows[0]["effect"] == "▲ 50 % (47–52) less time"
    assert told["fields"]["workers"] == {
        "verdict": "faster",
        "text": "last time ▲ 50 % (47–52) less time",
    }
    assert rows[1]["error"] == "out of memory"
    assert rows[1]["after"] == "not measured"
    assert rows[1]["at_s"] is None
    assert (rows[2]["before"], rows[2]["after"]) == ("20.0 ms a sample", "10.0 ms a sample")
    assert rows[2]["effect"] == "▲ 50 % (47–52) less time a sample"
