"""How the bound of a gain is told: never at odds with the share that the title names."""

import dataclasses
from typing import Any

import pytest

from tests.findings.facts import found, stages, waiting
from workbench.findings.exposed_communication import exposed_communication
from workbench.findings.finding import (
    CommunicationFacts,
    CopyFacts,
    DeviceFacts,
    Facts,
    Finding,
    Origin,
)
from workbench.findings.gain import bound
from workbench.findings.slow_copies import slow_copies

MS = 1_000_000


def idling(**changes: Any) -> Finding:
    """The device idles 40 ms of a step of 100 for the host, and all of it is gained."""
    fields: dict[str, Any] = {
        "code": "WB201",
        "title": "",
        "verdict": "yes",
        "severity": "warning",
        "evidence": {},
        "advice": "",
        "share_of_window": 0.4,
        "saving_ns_per_step_at_most": 40 * MS,
        "speedup_at_most": 100 / 60,
    }
    return Finding(**fields | changes)


def test_a_gain_that_is_the_share_needs_no_word() -> None:
    assert bound(idling()) == "at most 40.0 ms a step (40 % less time, 1.67 times as fast)"


def test_a_gain_far_below_the_share_says_that_other_work_sets_the_pace() -> None:
    """40 ms are idle, and without them a step of 100 takes 90: something else takes as long."""
    said = bound(idling(saving_ns_per_step_at_most=10 * MS, speedup_at_most=100 / 90))
    assert said == (
        "at most 10.0 ms a step (10 % less time, 1.11 times as fast); less than the 40 % above, "
        "since other work "
        "then sets the pace"
    )


def test_a_gain_above_the_share_says_what_else_is_hidden() -> None:
    said = bound(idling(saving_ns_per_step_at_most=60 * MS, speedup_at_most=100 / 40))
    assert said is not None
    assert "more than the 40 % above, since a host that runs ahead hides other waits" in said


def test_against_steps_of_record_the_profiler_is_named() -> None:
    of = Origin(
        run="r",
        settings=None,
        effective={},
        environment={},
        median_step_ns=50.0 * MS,
        mean_step_ns=50.0 * MS,
    )
    low = idling(saving_ns_per_step_at_most=5 * MS, speedup_at_most=50 / 45)
    said = bound(dataclasses.replace(low, origin=of))
    assert said is not None
    assert "the profiler lengthens what the host does" in said

    # 40 of 100 ms under the profiler, of 50 without it: 80 %.
    high = bound(dataclasses.replace(idling(speedup_at_most=50 / 10), origin=of))
    assert high is not None
    assert "above, since that is a share of steps under the profiler, which take longer" in high


@pytest.mark.parametrize(
    "other",
    [
        idling(code="WB301", speedup_at_most=1.01),
        idling(verdict="no", speedup_at_most=1.01),
        idling(share_of_window=None),
        idling(speedup_at_most=None),
    ],
    ids=["a share of another kind", "ruled out", "no share", "no factor"],
)
def test_nothing_is_explained_where_nothing_contradicts(other: Finding) -> None:
    assert "above" not in (bound(other) or "")


def test_one_time_as_fast_is_no_gain_to_name() -> None:
    said = bound(idling(verdict="no", saving_ns_per_step_at_most=1000, speedup_at_most=1.0001))
    assert said == "at most 1.00 µs a step"
    assert bound(idling(saving_ns_per_step_at_most=None, speedup_at_most=1.0)) is None


def test_one_rank_alone_may_gain_all_that_is_exposed() -> None:
    """Of 92 ms a step nobody knows what is waiting for a late rank: without one all of it goes.

    Hiding the transfer would gain 1 ms only, which bounds nothing where it may all be waiting.
    """
    alone = CommunicationFacts(
        device=0,
        window_ns=300 * MS,
        exposed_wait_ns=None,
        exposed_transfer_ns=276 * MS,
        calls=3,
        exposed_calls=3,
    )
    facts = Facts(trace_steps=3, communication=(alone,), bounds_ns={"communication": 1.0 * MS})
    found = exposed_communication(facts)
    assert found is not None
    assert found.verdict == "cannot_tell"
    assert found.saving_ns_per_step_at_most == 92 * MS
    told = exposed_communication(
        dataclasses.replace(facts, communication=(dataclasses.replace(alone, exposed_wait_ns=0),))
    )
    assert told is not None
    assert told.saving_ns_per_step_at_most == 1 * MS, "all ranks: it is transfer, and replayed"


def test_copies_of_all_kinds_are_named_beside_those_to_the_device() -> None:
    """Copies to the device are 42 ms of 100, and copies back take what is left."""
    copies = CopyFacts(
        total_ns=100 * MS, exposed_ns=42 * MS, pageable_ns=0, bytes=500_000_000, gb_s=5.0
    )
    device = DeviceFacts(
        index=0,
        window_ns=100 * MS,
        busy_ns=100 * MS,
        idle_ns=0,
        idle_by_cause={},
        exposed_communication_ns=0,
        exposed_memory_ns=100 * MS,
        copies=copies,
    )
    found = slow_copies(Facts(trace_steps=10, devices=(device,)))
    assert found is not None
    assert found.title.endswith("; with those from the device and inside it, copies take 100 %.")
    alone = dataclasses.replace(device, exposed_memory_ns=42 * MS)
    found = slow_copies(Facts(trace_steps=10, devices=(alone,)))
    assert found is not None
    assert "with those" not in found.title


def test_waiting_for_a_processor_is_told_beside_the_work_that_needs_it() -> None:
    """Of 90 ms that a step of 100 waits, 8 are decoding and 80 pass before a processor is free.

    Without decoding neither is left: the gain is of both, and the title names both.
    """
    facts = waiting(
        100,
        90,
        effective={"workers": 0},
        loader_stages=stages(
            batch_ns=88.0 * MS,
            fetch_ns=880 * MS,
            fetch_cpu_ns=80 * MS,
            samples_ns=880 * MS,
            collate_ns=0,
            run_delay_ns=800 * MS,
        ),
        stalls_ns={"decode": 8, "oversubscription": 80, "other": 2},
    )
    finding = found(facts, "WB102")
    assert finding is not None
    assert "each step waits 8.0 % for it, and 80 % for a processor that is free" in finding.title
    assert finding.saving_ns_per_step_at_most is not None
    assert finding.saving_ns_per_step_at_most == 88 * MS


def test_a_gain_above_the_time_of_a_batch_says_why() -> None:
    """Batches were seen to take 80 ms, a step waits 90: the bound is that of the wait."""
    split = {"decode": 90, "other": 0}
    facts = waiting(100, 90, effective={"workers": 0}, loader_stages=stages(), stalls_ns=split)
    finding = found(facts, "WB102")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == 90 * MS
    assert finding.advice.endswith(
        "The gain is above the 80.0 ms of a batch, because a step waits 90.0 ms on average, with "
        "all that goes beside making it."
    )
    assert "warning" not in finding.evidence, "none was raised, which is no missing measurement"
