"""WB107 and WB204: copies that nothing hides, and waits that only moved."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.findings.loops import Loop, fired, looped, of
from tests.store.records import record
from workbench.findings import moved_wait
from workbench.findings.slow_copies import slow_copies
from workbench.run.facts import gather
from workbench.store.record import Timings
from workbench.store.writing import new_run_folder

US = 1_000
PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"


def copying(name: str, *, hidden: bool = False) -> Loop:
    """Steps of 1000 µs: 1 MB copied from 10 to 210, a kernel from 210 (or beside it) on."""

    def body(loop: Loop, at: float) -> None:
        loop.copy(name, call=(at, 5), copied=(at + 10, 200))
        loop.trace.events[-1]["args"] |= {"bytes": 1_000_000, "stream": 20}
        loop.trace.events[-1]["tid"] = 20
        first = 12 if hidden else 210
        loop.launch("gemm", call=(at + 6, 3), kernel=(at + first, 1010 - first))

    return looped(body, 1000)


def test_a_pageable_copy_that_nothing_hides_asks_for_pinned_memory(tmp_path: Path) -> None:
    """200 of each 1000 µs, at 1 MB / 200 µs = 5 GB/s."""
    finding = fired(copying(PAGEABLE).run(tmp_path), "WB107")
    assert finding.severity == "critical"
    assert finding.share_of_window == pytest.approx(0.2, rel=0.01)
    assert finding.evidence["gb_s"] == pytest.approx(5)
    assert finding.saving_ns_per_step_at_most == pytest.approx(200 * US)
    assert "pin_memory=True" in finding.advice


def test_a_pinned_copy_is_told_to_overlap_and_not_to_be_pinned(tmp_path: Path) -> None:
    finding = fired(copying(PINNED).run(tmp_path), "WB107")
    assert "pin_memory" not in finding.advice
    assert "torch.cuda.Stream" in finding.advice


def test_a_hidden_copy_is_silent_however_slow(tmp_path: Path) -> None:
    """D07: what pinning would move was never on the way; 2 µs of it are exposed."""
    assert of(copying(PAGEABLE, hidden=True).run(tmp_path), "WB107") is None


def test_the_switch_is_offered_only_where_the_loader_does_not_pin(tmp_path: Path) -> None:
    facts = gather(copying(PAGEABLE).run(tmp_path).ranks[0], None)
    offered = slow_copies(replace(facts, effective={"pin_memory": False}))
    already = slow_copies(replace(facts, effective={"pin_memory": True}))
    assert offered is not None
    assert already is not None
    assert offered.setting == {"pin_memory": True, "non_blocking": True}
    assert already.setting is None


def reading(operator: str, waits: float) -> Loop:
    """A device that works all of each 1000 µs; the host waits for it in one operator."""

    def body(loop: Loop, at: float) -> None:
        loop.launch("gemm", call=(at, 5), kernel=(at + 10, 1000))
        loop.trace.op(operator, at + 20, waits + 10)
        loop.trace.runtime("cudaStreamSynchronize", at + 25, waits, correlation=90_000 + int(at))

    return looped(body, 1000)


def test_a_wait_that_moves_while_the_step_stays_gains_nothing(tmp_path: Path) -> None:
    """The loss is no longer read, and the copy behind it waits as long."""
    before, after = (tmp_path / name for name in ("before", "after"))
    before.mkdir()
    after.mkdir()
    first = gather(reading("aten::item", 900).run(before).ranks[0], None)
    second = gather(reading("aten::copy_", 880).run(after).ranks[0], None)
    finding = moved_wait(first, second, verdict="cannot_tell")
    assert finding is not None
    assert (finding.code, finding.verdict) == ("WB204", "no")
    assert finding.evidence["less_us_per_step"] == pytest.approx(900)
    assert finding.evidence["more_us_per_step"] == pytest.approx(880)
    assert moved_wait(first, second, verdict="faster") is None
    assert moved_wait(first, first, verdict="cannot_tell") is None


def recorded(parent: Path, name: str, loop: Loop) -> Path:
    """A Run folder; its steps of record, the same in each, take 1 ms, give or take 2 %."""
    chance = random.Random(1)
    steps = [int(1000 * US * chance.gauss(1, 0.02)) for _ in range(80)]
    with new_run_folder(parent, name) as new:
        loop.trace.write(new.path / "rank0.trace.json.gz")
        timings = Timings(
            step_ns=steps, input_ns=[], warmup=0, blocks=[40, 40], profiled_step_ns=[]
        )
        new.record = record(name=name, timings=timings, traces=["rank0.trace.json.gz"])
    return parent / name


def test_a_comparison_says_that_the_wait_only_moved(tmp_path: Path) -> None:
    first = wb.open(recorded(tmp_path, "read", reading("aten::item", 900)))
    second = wb.open(recorded(tmp_path, "unread", reading("aten::copy_", 880)))
    found = wb.compare(first, second)
    assert found.verdict == "cannot_tell"
    assert any("only moved: aten::item waits 900" in note for note in found.notes)
    assert not any("only moved" in note for note in wb.compare(first, first).notes)
