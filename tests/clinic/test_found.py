"""Is each planted fault named by its finding, and is the finding gone with the cure?

A busy machine adds waiting for a processor to every part of a loop; it counts as oversubscription,
and parts are compared without it unless it is what was planted.
"""

from pathlib import Path

import pytest

import workbench as wb
from workbench import clinic
from workbench.run.run import Run

HERE = [case.name for case in clinic.CASES if not case.needs_accelerator]
TRIES = 3
"""Other work on the machine can hide a fault, or look like one; not each time."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes"),
]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    """An empty folder for the Run, and one thread, so that loops on the CPU are alike."""
    monkeypatch.chdir(tmp_path)


def codes(run: Run) -> list[str]:
    return [finding.code for finding in run.findings if finding.verdict == "yes"]


def stalled(run: Run, case: clinic.Case) -> bool:
    """Whether the planted part is the largest of the wait for data."""
    split = run.rank().stalls
    assert split is not None
    assert sum(ns or 0 for ns in split.by_part.values()) == split.exposed_ns
    beside = {"other", "oversubscription"} - {case.stall}
    parts = {part: ns for part, ns in split.by_part.items() if ns and part not in beside}
    return max(parts, key=lambda part: parts[part], default=None) == case.stall


@pytest.mark.parametrize("name", HERE)
def test_the_fault_is_named_and_is_the_largest_part_of_the_wait(name: str) -> None:
    case, tries = clinic.case(name), []
    for _ in range(TRIES):
        run = wb.profile(case.workload(), case.given(), record=case.record, progress=False)
        tries.append(codes(run))
        if case.finding in codes(run) and (case.stall is None or stalled(run, case)):
            return
    raise AssertionError(tries)


@pytest.mark.parametrize("name", HERE)
def test_the_cure_makes_the_finding_go_away(name: str) -> None:
    case, tries = clinic.case(name), []
    for _ in range(TRIES):
        run = wb.profile(case.cured(), case.settings(), record=case.record, progress=False)
        tries.append(codes(run))
        if case.finding not in tries[-1]:
            return
    raise AssertionError(tries)


def test_settings_cure_what_other_code_need_not() -> None:
    for case in clinic.CASES:
        mended = case.settings() == case.given()
        assert mended is (not case.cure)
        assert clinic.case(case.name, scale=0).settings() == case.settings()
