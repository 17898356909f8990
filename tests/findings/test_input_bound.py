"""WB101 fires on a step that waits for data, and stays silent where waiting costs nothing."""

from typing import Any

import pytest

from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.input_bound import input_bound
from workbench.trace.table import Violation

MS = 1_000_000


def measured(step_ms: float, wait_ms: float, *, steps: int = 20, **rest: Any) -> Facts:
    """A CPU run of equal steps, each with the same wait."""
    return Facts(
        step_ns=(int(step_ms * MS),) * steps, input_ns=(int(wait_ms * MS),) * steps, **rest
    )


def device(
    *, window_ms: float, busy_ms: float, input_ms: float | None, index: int = 0
) -> DeviceFacts:
    idle = window_ms - busy_ms
    waited = None if input_ms is None else int(input_ms * MS)
    return DeviceFacts(
        index=index,
        window_ns=int(window_ms * MS),
        busy_ns=int(busy_ms * MS),
        idle_ns=int(idle * MS),
        idle_by_cause={"input": waited},
        exposed_communication_ns=0,
        exposed_memory_ns=0,
    )


def fired(facts: Facts) -> Finding:
    finding = input_bound(facts)
    assert finding is not None
    return finding


def test_a_step_that_waits_60_of_100_ms_is_critical_and_bounds_the_gain() -> None:
    finding = fired(measured(100, 60, effective={"workers": 0}, environment={"usable_cpus": 2}))
    assert (finding.code, finding.verdict, finding.severity) == ("WB101", "yes", "critical")
    assert finding.share_of_window == pytest.approx(0.6)
    assert finding.saving_ns_per_step_at_most == 60 * MS
    assert finding.speedup_at_most == pytest.approx(100 / 40)
    assert finding.setting == {"workers": 2}


def test_the_bound_is_the_far_end_of_what_replayed_steps_tell() -> None:
    """Steps of 100 ms, on batches at hand 40 to 60: 50 in the middle, and half of all middles lie.

    Student's interval of six such steps, on the logarithm: about 8 ms to either side.
    """
    replayed = tuple(ms * MS for ms in (40, 44, 48, 52, 56, 60))
    finding = fired(measured(100, 70, replay_step_ns=replayed, effective={"workers": 2}))
    assert finding.evidence["saving_low_us"] < 50_000 < finding.evidence["saving_high_us"]
    saving = finding.saving_ns_per_step_at_most
    assert saving == pytest.approx(finding.evidence["saving_high_us"] * 1000)
    assert 50 * MS < saving <= 60 * MS, "the fastest of them took 40"


@pytest.mark.parametrize(
    ("wait_ms", "severity"), [(5.1, "info"), (10, "warning"), (19.9, "warning"), (20, "critical")]
)
def test_severity_follows_the_documented_thresholds(wait_ms: float, severity: str) -> None:
    assert fired(measured(100, wait_ms)).severity == severity


def test_a_wait_of_5_percent_or_less_is_silent() -> None:
    assert input_bound(measured(100, 5)) is None


def test_fewer_than_20_steps_are_never_critical_and_one_step_says_nothing() -> None:
    assert fired(measured(100, 60, steps=19)).severity == "warning"
    assert input_bound(measured(100, 60, steps=1)) is None


def test_rows_of_a_table_get_batched_fetch_and_never_more_workers() -> None:
    """D01: 256 rows at 20 µs each; workers made it three times slower."""
    facts = measured(10, 5.12, effective={"workers": 0, "samples_per_step": 256})
    finding = fired(facts)
    assert finding.setting is None
    assert "__getitems__" in finding.advice


def test_a_device_that_keeps_busy_while_the_host_waits_is_silent() -> None:
    """D04, slow device: the loop waits 80 ms a step, yet the device idles 1 ms of 100."""
    facts = measured(
        100,
        80,
        trace_steps=10,
        trace_input_wait_ns=800 * MS,
        trace_window_ns=1000 * MS,
        devices=(device(window_ms=1000, busy_ms=980, input_ms=10),),
    )
    assert input_bound(facts) is None


def test_on_a_device_only_idle_for_input_counts_and_the_bound_keeps_the_busy_time() -> None:
    """Profiled: 173 of 302 ms idle for input, 120 busy. Real step 200 ms: at most 80 can go."""
    facts = measured(
        200,
        150,
        trace_steps=20,
        devices=(device(window_ms=302 * 20, busy_ms=120 * 20, input_ms=173 * 20),),
    )
    finding = fired(facts)
    assert finding.saving_ns_per_step_at_most == 80 * MS
    assert finding.speedup_at_most == pytest.approx(200 / 120)
    assert finding.device == 0


def test_without_causes_the_verdict_is_cannot_tell() -> None:
    violation = Violation(code="clock", message="clocks differ by 3 ms", voids=("causes", "queue"))
    facts = Facts(
        trace_steps=10,
        trace_input_wait_ns=400 * MS,
        trace_window_ns=1000 * MS,
        violations=(violation,),
        trust_ok=False,
        devices=(device(window_ms=1000, busy_ms=300, input_ms=400),),
    )
    finding = fired(facts)
    assert finding.verdict == "cannot_tell"
    assert finding.saving_ns_per_step_at_most is None


def test_a_loader_that_was_not_recorded_is_not_a_loader_that_takes_no_time() -> None:
    facts = Facts(trace_steps=10, devices=(device(window_ms=1000, busy_ms=300, input_ms=None),))
    assert input_bound(facts) is None


def test_a_cpu_trace_from_elsewhere_is_judged_by_its_own_steps() -> None:
    facts = Facts(
        trace_steps=4,
        trace_window_ns=400 * MS,
        trace_input_wait_ns=100 * MS,
        host_breakdown_ns={"input": 100 * MS, "forward": 300 * MS},
    )
    finding = fired(facts)
    assert finding.share_of_window == pytest.approx(0.25)
    assert finding.severity == "warning"
    assert finding.evidence["source"] == "trace"


def test_when_all_processors_load_data_more_workers_are_not_advised() -> None:
    facts = measured(100, 40, effective={"workers": 2}, environment={"usable_cpus": 2})
    assert fired(facts).setting is None


def test_a_device_that_was_not_recorded_may_have_worked_while_the_loop_waited() -> None:
    """The host waits 50 ms of 100; what the GPU did meanwhile nobody knows."""
    lost = Violation(code="device_not_recorded", message="no kernels", voids=("devices", "causes"))
    facts = measured(
        100,
        50,
        trace_steps=10,
        trace_window_ns=1000 * MS,
        trace_input_wait_ns=500 * MS,
        host_breakdown_ns={"input": 500 * MS, "forward": 500 * MS},
        violations=(lost,),
        trust_ok=False,
    )
    finding = fired(facts)
    assert finding.verdict == "cannot_tell"
    assert finding.speedup_at_most is None


def test_the_finding_names_the_device_that_waits_and_not_the_first_one() -> None:
    busy = device(window_ms=1000, busy_ms=990, input_ms=0)
    waiting = device(window_ms=1000, busy_ms=500, input_ms=400, index=1)
    assert fired(Facts(trace_steps=10, devices=(busy, waiting))).device == 1


def test_a_step_time_of_the_profiler_is_called_one() -> None:
    traced = Facts(trace_steps=10, devices=(device(window_ms=1000, busy_ms=500, input_ms=400),))
    assert "100 ms under the profiler" in fired(traced).title
    assert "profiler" not in fired(measured(100, 60)).title


def test_steps_on_batches_at_hand_bound_the_gain_better_than_the_wait() -> None:
    """Steps of 100 ms wait 60; with the loader at rest they take 30: workers took time as well."""
    finding = fired(measured(100, 60, replay_step_ns=(30 * MS,) * 6, effective={"workers": 2}))
    assert finding.saving_ns_per_step_at_most == 70 * MS
    assert finding.evidence["replayed_step_us"] == 30_000


def test_a_loader_inside_the_loop_saves_its_wait_and_no_more() -> None:
    finding = fired(measured(100, 60, replay_step_ns=(30 * MS,) * 6, effective={"workers": 0}))
    assert finding.saving_ns_per_step_at_most == 60 * MS


def test_a_wait_that_costs_nothing_when_it_is_gone_is_silent() -> None:
    """D07: the wait for data went from 80 ms to none, and the step stayed."""
    assert input_bound(measured(100, 60, replay_step_ns=(99 * MS,) * 6)) is None


def test_replayed_steps_that_scatter_leave_no_more_than_the_fastest_of_them_does() -> None:
    """Steps of 100 ms; replayed 84, 100, 116: on average the same, and nobody can say so.

    Student's interval is 40 ms to both sides; yet no step was seen to take less than 84.
    """
    replayed = tuple(ms * MS for ms in (84, 100, 116))
    finding = fired(measured(100, 30, replay_step_ns=replayed, effective={"workers": 2}))
    assert finding.evidence["saving_low_us"] == 0
    assert finding.saving_ns_per_step_at_most == 16 * MS


def test_a_gain_is_never_the_whole_step_where_one_was_measured_without_its_loader() -> None:
    """Steps of 100 ms that wait 99.9; replayed ones scatter (2 to 290 ms): 98 ms can go."""
    replayed = tuple(ms * MS for ms in (2, 3, 290, 3))
    finding = fired(measured(100, 99.9, replay_step_ns=replayed, effective={"workers": 2}))
    assert finding.saving_ns_per_step_at_most == 98 * MS
    assert finding.speedup_at_most == pytest.approx(100 / 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_is_fast_enough_alone_need_be_no_faster(workers: int) -> None:
    """It brings a batch each 20 ms, the step alone takes 39: 0.51 times its need.

    Yet it is waited for, in its turn or for processors: it has to run beside the step, not to
    become slower.
    """
    facts = measured(
        60,
        20,
        replay_step_ns=(39 * MS,) * 6,
        loader_alone_batch_ns=20.0 * MS,
        effective={"workers": workers},
    )
    finding = fired(facts)
    assert "needed_loader_speedup" not in finding.evidence, "it is fast enough: nothing is needed"
    assert "times as fast" not in finding.advice


def test_replayed_steps_that_scatter_over_half_a_step_tell_nothing() -> None:
    """60, 100 and 140 ms: the interval is 99 ms to both sides, and the wait is the bound."""
    replayed = tuple(ms * MS for ms in (60, 100, 140))
    finding = fired(measured(100, 30, replay_step_ns=replayed, effective={"workers": 2}))
    assert finding.saving_ns_per_step_at_most == 30 * MS
    assert "replayed_step_us" not in finding.evidence


def test_the_rate_that_is_needed_is_said_before_the_remedy() -> None:
    """D04: the device takes a batch every 130 ms, 8 workers bring one every 300."""
    facts = measured(
        300,
        170,
        replay_step_ns=(130 * MS,) * 6,
        loader_alone_batch_ns=300.0 * MS,
        effective={"workers": 8},
        environment={"usable_cpus": 8},
    )
    finding = fired(facts)
    assert finding.advice.startswith(
        "Alone the loader takes 300 ms a batch, the step 130 ms without it: it would have to be "
        "2.31 times as fast for no wait."
    )
    assert finding.evidence["needed_loader_speedup"] == pytest.approx(300 / 130)


def test_where_the_trace_cannot_tell_steps_on_batches_at_hand_can() -> None:
    violation = Violation(code="clock", message="clocks differ by 3 ms", voids=("causes", "queue"))
    facts = measured(100, 60, violations=(violation,), replay_step_ns=(40 * MS,) * 6)
    finding = fired(facts)
    assert finding.verdict == "yes"
    assert finding.evidence["source"] == "steps on batches at hand"
    assert finding.share_of_window == pytest.approx(0.6)
