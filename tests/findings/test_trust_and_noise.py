"""WB901 and WB902: what must be said before any verdict, and when there is nothing to say."""

import pytest

from workbench.findings import diagnose
from workbench.findings.finding import Facts
from workbench.findings.noisy_machine import noisy_machine
from workbench.findings.untrusted_profile import untrusted_profile
from workbench.trace.table import Violation

MS = 1_000_000


def test_a_failed_check_is_named_with_what_it_voids() -> None:
    clock = Violation(code="clock", message="clocks differ", count=225, voids=("causes", "queue"))
    finding = untrusted_profile(Facts(trust_ok=False, violations=(clock,)))
    assert finding is not None
    assert finding.code == "WB901"
    assert finding.evidence["voids"] == ["causes", "queue"]
    assert finding.evidence["violations"] == {"clock": 225}


def test_violations_that_leave_the_trace_trustworthy_are_no_finding() -> None:
    last = Violation(code="steps_incomplete", message="the last step is cut")
    assert untrusted_profile(Facts(trust_ok=True, violations=(last,))) is None


def test_a_spread_of_12_percent_between_equal_blocks_is_a_warning() -> None:
    finding = noisy_machine(Facts(noise_floor=0.12, block_medians_ns=(10 * MS, 11.2 * MS)))
    assert finding is not None
    assert finding.severity == "warning"
    assert finding.evidence["block_medians_us"] == [10_000, 11_200]


QUIET = Facts(noise_floor=0.02, load={"others_cpu_share": 0.1})


@pytest.mark.parametrize("facts", [Facts(), QUIET])
def test_a_quiet_machine_or_an_unmeasured_one_is_silent(facts: Facts) -> None:
    assert noisy_machine(facts) is None


def test_competing_processes_are_named_even_when_steps_agree() -> None:
    finding = noisy_machine(Facts(noise_floor=0.01, load={"others_cpu_share": 0.5}))
    assert finding is not None
    assert "50 %" in finding.title


def test_findings_come_worst_first() -> None:
    waiting = Facts(
        step_ns=(100 * MS,) * 20, input_ns=(60 * MS,) * 20, noise_floor=0.12, trust_ok=False
    )
    assert [f.code for f in diagnose(waiting)] == ["WB101", "WB901", "WB902"]
