"""Gains about one wait agree: no part gains more than a free loader, nor more than it can."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.findings.facts import MS, found, stages, waiting
from workbench.findings import diagnose
from workbench.findings.finding import Facts

PARTS = ("storage", "decode", "collate", "transfer", "pin", "startup", "oversubscription")
ms = st.integers(0, 100)


@st.composite
def loops(draw: Any) -> Facts:
    """Any loop whose steps, waits and batches are known, and the split of its waits."""
    step = draw(st.integers(10, 200))
    wait, replay = draw(st.integers(1, step)), draw(st.integers(1, step))
    read, cpu, collate, asleep = draw(ms), draw(ms), draw(ms), draw(ms)
    fetch = read + cpu + collate + asleep + 1
    made = stages(
        batch_ns=float(fetch * MS),
        fetch_ns=10 * fetch * MS,
        fetch_cpu_ns=10 * (cpu + collate) * MS,
        samples_ns=10 * (fetch - collate) * MS,
        collate_ns=10 * collate * MS,
        read_wait_ns=10 * read * MS,
        cpu_share=(cpu + collate) / fetch,
        unpickle_ns=10 * draw(ms) * MS,
    )
    split = {part: draw(ms) for part in (*PARTS, "other")} | {"other": 1 + draw(ms)}
    return waiting(
        step,
        wait,
        replay_step_ns=draw(st.sampled_from([None, (replay * MS,) * 6])),
        loader_alone_batch_ns=float(draw(st.integers(1, 200)) * MS),
        loader_stages=made,
        stalls_ns=split,
        stalls_other_ns={"blocked": draw(st.integers(0, split["other"]))},
        usable=draw(st.integers(1, 8)),
        effective={"workers": draw(st.integers(0, 8)), "pin_memory": True},
    )


@settings(max_examples=200, deadline=None)
@given(loops())
def test_no_part_gains_more_than_a_free_loader(facts: Facts) -> None:
    assert facts.step_ns is not None
    assert facts.input_ns is not None
    step, wait = facts.step_ns[0], facts.input_ns[0]
    told = {f.code: f for f in diagnose(facts) if "WB101" <= f.code <= "WB107"}
    gains = {
        code: f.saving_ns_per_step_at_most
        for code, f in told.items()
        if f.saving_ns_per_step_at_most is not None
    }
    if facts.replay_step_ns:
        most = max(0, step - facts.replay_step_ns[0])
        assert all(gain <= most + 1 for gain in gains.values()), gains
    else:
        assert all(gain <= wait + 1 for gain in gains.values()), gains
    if "WB101" in gains:
        assert all(0 <= gain <= gains["WB101"] + 1 for gain in gains.values()), gains
        parts = [
            told[code].share_of_window or 0 for code in ("WB102", "WB103", "WB107") if code in told
        ]
        assert sum(parts) <= (told["WB101"].share_of_window or 0) + 1e-9
        speedup = told["WB101"].evidence.get("needed_loader_speedup")
        assert speedup is None or speedup >= 1
    for code, gain in gains.items():
        speedup = told[code].speedup_at_most
        assert speedup is None or speedup == pytest.approx(step / (step - gain))


def halved(workers: int, replay: int, **split: int) -> Facts:
    """A batch takes a worker 80 ms, half of it reading and half decoding."""
    made = stages(
        fetch_cpu_ns=400 * MS,
        samples_ns=800 * MS,
        collate_ns=0,
        cpu_share=0.5,
        read_wait_ns=400 * MS,
    )
    step = max(replay, 80 // max(workers, 1)) if workers else replay + 80
    return waiting(
        step,
        step - replay,
        replay_step_ns=(replay * MS,) * 6,
        loader_stages=made,
        stalls_ns=split,
        effective={"workers": workers},
    )


def test_without_its_reads_a_batch_comes_as_soon_as_it_is_decoded() -> None:
    """Two workers bring one each 40 ms, without reads each 20; the step alone takes 5.

    So 20 of 40 ms can go, though reads are nine tenths of the very waits: those 35 ms are what a
    free loader saves, and the decoding would then be waited for.
    """
    finding = found(halved(2, 5, storage=9, decode=1), "WB103")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(20 * MS)


def test_what_a_part_hides_behind_another_is_its_gain_as_well() -> None:
    """The step alone takes 25 ms: without reads the loader keeps up, and all 15 ms go.

    By its share of the wait, 60 %, it would have been 9, which was less than what really goes.
    """
    finding = found(halved(2, 25, storage=6, decode=4), "WB103")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(15 * MS)


def test_inside_the_loop_a_part_saves_what_it_takes() -> None:
    """5 ms of step and 80 of loading: without the reads 45 are left."""
    finding = found(halved(0, 5, storage=1, decode=1), "WB103")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(40 * MS)
    assert finding.speedup_at_most == pytest.approx(85 / 45)


def test_batches_that_are_made_in_no_time_are_not_what_a_held_up_step_waits_for() -> None:
    """44 µs a batch, in steps of 25 ms: one step of six was held up, and its mean waits 1.3 ms."""
    made = stages(
        batch_ns=44_000.0, fetch_ns=440_000, fetch_cpu_ns=400_000, samples_ns=200_000,
        collate_ns=200_000,
    )  # fmt: skip
    split = {"collate": 10, "oversubscription": 90}
    facts = waiting(25, 1.3, loader_stages=made, stalls_ns=split, effective={"workers": 0})
    assert found(facts, "WB101") is not None
    assert found(facts, "WB102") is None
    slow = dataclasses.replace(made, batch_ns=1.3e6, fetch_ns=13 * MS, samples_ns=3 * MS)
    slow = dataclasses.replace(slow, collate_ns=10 * MS, fetch_cpu_ns=13 * MS)
    split = {"collate": 90, "oversubscription": 10}
    facts = waiting(20, 1.3, loader_stages=slow, stalls_ns=split, effective={"workers": 0})
    assert found(facts, "WB102") is not None
