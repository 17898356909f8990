"""WB401 fires on exposed transfer, WB402 on the rank that others wait for; else they are silent."""

from dataclasses import replace

import pytest

from workbench.findings import diagnose
from workbench.findings.exposed_communication import exposed_communication
from workbench.findings.finding import CommunicationFacts, Facts, Finding, StragglerFacts
from workbench.findings.straggler import straggler
from workbench.trace.table import Violation

MS = 1_000_000


def exposed(
    transfer_ms: float, *, wait_ms: float | None = 0, steps: int = 20, **rest: object
) -> Facts:
    """Steps of 100 ms, each with the same exposed communication."""
    communication = CommunicationFacts(
        device=0,
        window_ns=steps * 100 * MS,
        exposed_wait_ns=None if wait_ms is None else int(steps * wait_ms * MS),
        exposed_transfer_ns=int(steps * transfer_ms * MS),
        calls=5 * steps,
        exposed_calls=steps,
        largest="all_reduce",
        largest_exposed_ns=int(steps * transfer_ms * MS),
    )
    return Facts(trace_steps=steps, communication=(communication,), **rest)


def late(
    deficit_ms: float, *, phase: str | None = "host", excess_ms: float = 20, steps: int = 20
) -> Facts:
    """Steps of 100 ms in which rank 3 waits so much less than the median rank."""
    return Facts(
        rank=3,
        straggler=StragglerFacts(
            wait_deficit_ns_per_step=deficit_ms * MS,
            step_ns=100 * MS,
            ranks=8,
            steps=steps,
            phase=phase,
            excess_ns_per_step=excess_ms * MS,
        ),
    )


def fired(finding: Finding | None) -> Finding:
    assert finding is not None
    return finding


def test_where_no_steps_are_marked_a_straggler_is_told_of_the_recording() -> None:
    facts = late(20)
    assert facts.straggler is not None
    finding = fired(straggler(replace(facts, straggler=replace(facts.straggler, steps=None))))
    assert "of the recording" in finding.title
    assert finding.severity == "info"
    assert finding.saving_ns_per_step_at_most is None, "nobody knows what a step is"
    assert " a step" not in finding.advice


def test_exposed_transfer_bounds_the_gain_by_what_hiding_all_of_it_saves() -> None:
    finding = fired(exposed_communication(exposed(25)))
    assert (finding.code, finding.verdict, finding.severity) == ("WB401", "yes", "critical")
    assert finding.share_of_window == pytest.approx(0.25)
    assert finding.saving_ns_per_step_at_most == 25 * MS
    assert finding.speedup_at_most == pytest.approx(100 / 75)


@pytest.mark.parametrize(
    ("replayed_ms", "gain_ms"),
    [(15, 15), (40, 25), (0, 0), (None, 25)],
    ids=["host as late", "waits for late ranks too", "hides nothing", "not replayed"],
)
def test_the_gain_is_no_more_than_the_replay_with_communication_hidden(
    replayed_ms: float | None, gain_ms: float
) -> None:
    """Steps of 100 ms hold 25 ms of exposed transfer.

    Where the host launches what follows only 10 ms before the transfer ends, hiding the transfer
    saves 25 - 10 = 15 ms, however long it was.
    """
    bound = None if replayed_ms is None else replayed_ms * MS
    facts = replace(exposed(25), bounds_ns={"communication": bound, "input": 3 * MS})
    finding = fired(exposed_communication(facts))
    assert finding.saving_ns_per_step_at_most == gain_ms * MS
    assert finding.speedup_at_most == pytest.approx(100 / (100 - gain_ms))
    assert finding.share_of_window == pytest.approx(0.25)
    assert "25.0 ms of each step" in finding.title, "what is exposed, whatever can be gained"


@pytest.mark.parametrize(
    ("transfer_ms", "steps", "severity"),
    [(10.1, 20, "warning"), (20, 20, "critical"), (20, 19, "warning"), (50, 2, "warning")],
)
def test_severity_of_exposed_transfer(transfer_ms: float, steps: int, severity: str) -> None:
    finding = fired(exposed_communication(exposed(transfer_ms, steps=steps)))
    assert finding.severity == severity


@pytest.mark.parametrize(
    "facts",
    [
        exposed(10),
        exposed(5, wait_ms=80),
        exposed(50, steps=1),
        Facts(trace_steps=20),
        exposed(50, violations=(Violation(code="missing_kernel", message="", voids=("busy",)),)),
    ],
    ids=["at the threshold", "it only waits", "one step", "no communication", "voided"],
)
def test_exposed_transfer_is_silent(facts: Facts) -> None:
    assert exposed_communication(facts) is None


def test_one_rank_alone_cannot_tell_transfer_from_waiting() -> None:
    finding = fired(exposed_communication(exposed(50, wait_ms=None)))
    assert (finding.verdict, finding.severity) == ("cannot_tell", "info")
    assert finding.evidence["exposed_wait_us"] is None
    assert "all ranks" in finding.advice


def test_a_straggler_is_named_with_its_phase_and_the_most_it_costs() -> None:
    finding = fired(straggler(late(25)))
    assert (finding.code, finding.rank, finding.severity) == ("WB402", 3, "critical")
    assert finding.title.startswith("Rank 3 is a straggler")
    assert "host code" in finding.title
    assert finding.saving_ns_per_step_at_most == 25 * MS
    assert finding.speedup_at_most == pytest.approx(100 / 75)


def test_a_phase_that_explains_less_than_80_percent_is_not_called_the_cause() -> None:
    finding = fired(straggler(late(25.1, excess_ms=20)))
    assert "host code" not in finding.title
    assert "imbalance" in finding.advice


@pytest.mark.parametrize(
    ("deficit_ms", "steps", "severity"),
    [(5.1, 20, "info"), (10, 20, "warning"), (20, 20, "critical"), (20, 4, "warning")],
)
def test_severity_of_a_straggler(deficit_ms: float, steps: int, severity: str) -> None:
    assert fired(straggler(late(deficit_ms, steps=steps))).severity == severity


@pytest.mark.parametrize("facts", [late(5), Facts(rank=0)], ids=["5 percent", "another rank"])
def test_no_straggler_is_silent(facts: Facts) -> None:
    assert straggler(facts) is None


def test_a_straggler_points_at_its_own_findings_only_where_it_has_some() -> None:
    """Rank 3 alone, and rank 3 whose loop waits 60 of 100 ms for data as well."""
    alone = next(f for f in diagnose(late(25, excess_ms=25)) if f.code == "WB402")
    assert "findings" not in alone.advice
    waiting = replace(late(25, excess_ms=25), step_ns=(100 * MS,) * 20, input_ns=(60 * MS,) * 20)
    both = next(f for f in diagnose(waiting) if f.code == "WB402")
    assert "Its own findings: WB101" in both.advice
