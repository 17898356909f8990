"""Which bound may be held against a measured gain? Not that of another loop or thing."""

import io
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import workbench as wb
from tests.tuning.loops import rows, training
from tests.tuning.made import block, trial
from workbench.findings import Finding, Origin
from workbench.recording.environment import environment
from workbench.settings import Settings
from workbench.statistics.change import Change
from workbench.tuning.advice import bound_of
from workbench.tuning.elsewhere import elsewhere
from workbench.tuning.fair import _Draft, _Turns
from workbench.tuning.trial import FairRuns
from workbench.tuning.verification import Verification

LOOP = {
    "model": "Net",
    "data_set": "Rows",
    "batch_size": 32,
    "workers": 0,
    "can": {"compile": True},
}
MS = 1_000_000


def finding(code: str = "WB101", **changed: Any) -> Finding:
    given: dict[str, Any] = {
        "code": code,
        "title": "Input-bound.",
        "verdict": "yes",
        "severity": "warning",
        "evidence": {},
        "advice": "Load in worker processes.",
        "setting": {"workers": 2},
        "speedup_at_most": 2.0,
    }
    return Finding(**{**given, **changed})


def origin(effective: Mapping[str, Any], step_ms: float | None = 100, **changed: Any) -> Origin:
    step = None if step_ms is None else step_ms * MS
    given: dict[str, Any] = {
        "run": "mine",
        "settings": {},
        "effective": effective,
        "environment": environment(),
        "median_step_ns": step,
        "mean_step_ns": step,
    }
    return Origin(**given | changed)


def verified(found: Finding, *, before_ms: float = 100, after_ms: float = 30) -> Verification:
    """Steps of 100 ms that the setting makes 30, on the loop ``LOOP``."""
    setting = Settings.from_json(dict(found.setting or {}))
    sides = [
        replace(
            trial([block([ms * (1 + 0.01 * (k % 2))] * 5) for k in range(4)]),
            effective=LOOP | change,
        )
        for ms, change in ((before_ms, {}), (after_ms, setting.changes()), (before_ms, {}))
    ]
    fair = FairRuns(trials=tuple(sides), ended="finished", elapsed_s=1.0)
    return Verification(
        settings=setting,
        base=Settings(),
        finding=found,
        fair=fair,
        parity=None,
        before=None,
        after=None,
        elsewhere=elsewhere(found, fair.trials[0]),
    )


def test_a_finding_of_this_loop_keeps_its_bound() -> None:
    answer = verified(finding(origin=origin(LOOP)))
    assert answer.elsewhere == ()
    assert answer.bound is not None
    assert answer.bound.held is False  # at most twice as fast, and it is three times


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "Other"}, "model Other, here Net"),
        ({"data_set": "Pictures", "batch_size": 8}, "data_set Pictures, here Rows, batch_size 8"),
        ({"workers": 4}, "workers 4, here 0"),
    ],
)
def test_the_bound_of_another_loop_is_not_held_against_the_gain(
    changed: dict[str, Any], said: str
) -> None:
    answer = verified(finding(origin=origin(LOOP | changed)))
    assert answer.bound is None
    assert "the bound of WB101 belongs to another loop" in answer.sentence
    assert f"Run mine: {said}" in " ".join(repr(answer).split())
    assert "more than" not in answer.sentence
    told = answer.to_json()["elsewhere"]
    assert {each["name"] for each in told} == set(changed)


def test_the_same_names_on_other_data_are_told_by_the_step() -> None:
    """30 ms in the Run that the finding is of and 100 here: other data, or a busier machine."""
    answer = verified(finding(origin=origin(LOOP, step_ms=30)))
    assert "A step took 30.0 ms in Run mine" in " ".join(repr(answer).split())
    assert answer.bound is not None, "a busy machine alone makes no other loop"
    same = verified(finding(origin=origin(LOOP, step_ms=60)))
    assert "A step took" not in repr(same)


def test_another_machine_is_another_loop_and_a_trace_from_elsewhere_cannot_be_told() -> None:
    other = origin(LOOP, environment={**environment(), "usable_cpus": 64})
    assert [each.name for each in verified(finding(origin=other)).elsewhere] == ["usable_cpus"]
    trace = origin({}, step_ms=None, settings=None, environment={})
    answer = verified(finding(origin=trace))
    assert answer.bound is None
    assert "whose loop is not recorded" in " ".join(repr(answer).split())


def test_a_bound_in_time_and_one_in_shares_hold_where_either_does() -> None:
    """Mean steps of 1.1 ms wait 0.2 on average: 18 %. Usual steps take 0.5 ms, and may save 0.2.

    Small batches make such steps: what holds one of them up for milliseconds is in the mean.
    """
    times: dict[str, Any] = {"ratio": 0.7, "low": 0.68, "high": 0.72, "noise_floor": 0.0}
    gained = Change(verdict="faster", n_a=80, n_b=80, **times)
    found = bound_of(0.5e6, 0.2e6, 1.1 / 0.9, gained)
    assert found is not None
    assert found.saving == pytest.approx(0.4)
    assert found.held is True
    slower = bound_of(2.0e6, 0.2e6, 1.1 / 0.9, gained)
    assert slower is not None
    assert slower.saving == pytest.approx(0.2 / 1.1)
    assert slower.held is False


def test_a_switch_that_acts_on_more_breaks_no_bound() -> None:
    """WB201 bounds the waiting of the device; compiling fuses its kernels as well."""
    launches = finding("WB201", setting={"compile": True}, speedup_at_most=1.5)
    answer = verified(launches)
    assert answer.bound is not None
    assert answer.bound.held is None
    assert "more than the 33 % of the finding, since it also fuses kernels" in answer.sentence
    graphs = verified(finding("WB201", setting={"cuda_graphs": True}, speedup_at_most=1.5))
    assert graphs.bound is not None
    assert graphs.bound.held is False


def turns(*effective: dict[str, Any], steps: int = 20) -> _Turns:
    return _Turns(
        work=None,  # type: ignore[arg-type]
        drafts=[_Draft(settings=Settings(), effective=each) for each in effective],
        steps=steps,
        measuring=None,  # type: ignore[arg-type]
        until=None,
        warmed={},
    )


@pytest.mark.parametrize(
    ("epoch", "steps", "whole", "said"),
    [(6, 24, 6, False), (16, 32, 16, False), (30, 60, 30, False), (400, 20, 1, True)],
)
def test_keeping_workers_is_measured_over_whole_epochs(
    epoch: int, steps: int, whole: int, said: bool
) -> None:
    """Two starts a block at least; what would take more than thrice the steps is said instead."""
    anew = {"workers": 2, "persistent_workers": False, "batches_per_epoch": epoch}
    made = turns(anew, {**anew, "persistent_workers": True}, anew)
    made._lengthen()
    assert (made.steps, made.whole) == (steps, whole)
    assert [f"steps={2 * epoch}" in note for note in made.notes] == [True] * said
    same = turns(anew, anew)
    same._lengthen()
    assert (same.steps, same.whole) == (20, 1)


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_finding_is_verified_against_the_settings_that_it_was_found_under(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the optimizer to what a bf16 Run had is compared with bf16, not with fp32."""
    work = training(DataLoader(rows(), batch_size=8))
    run = wb.profile(work, Settings(precision="bf16"), steps=3, folder=tmp_path, progress=False)
    found = run.findings
    assert all(each.origin is not None for each in found)
    record = run.record
    assert record is not None
    mine = finding(
        "WB205",
        setting={"optimizer": "fused"},
        origin=origin(record.effective, None, settings=record.settings, run=run.name),
    )
    asked: dict[str, Any] = {"steps": 3, "blocks": 1, "record": None, "progress": False}
    answer = wb.verify(work, mine, folder=tmp_path, **asked)
    assert answer.base == Settings(precision="bf16")
    assert answer.elsewhere == ()
    assert "precision=bf16" in " ".join(answer.notes)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    plain = wb.verify(work, mine, before=Settings(), folder=tmp_path, **asked | {"progress": True})
    assert work.title in terminal.getvalue(), "a bar is shown meanwhile"
    assert {each.name for each in plain.elsewhere} == {"precision"}
