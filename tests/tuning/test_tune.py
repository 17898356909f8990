"""Does a search find what helps, leave what does not, and put everything back?"""

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

import workbench as wb
from tests.tuning.loops import Sleepy, Watching, rows, state_bytes, training
from workbench.errors import RunError, SettingError, WorkloadError
from workbench.settings import Settings
from workbench.tuning import candidates as offered
from workbench.tuning import search as walk
from workbench.tuning.candidates import Candidate

pytestmark = pytest.mark.slow


def busy(seconds: float) -> None:
    """Processor time of this thread, which other load does not shorten."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def offering(monkeypatch: pytest.MonkeyPatch, *changes: Settings, **more: Any) -> None:
    """Let a search try these changes, and no findings."""
    made = [Candidate(change=change, origin="offer", **more) for change in changes]
    monkeypatch.setattr(walk, "from_offers", lambda *_: made)
    nothing = {"findings": [], "optimizer_share": None}
    monkeypatch.setattr(walk, "diagnosis", lambda *_, **__: nothing)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_the_setting_of_a_slow_loader_is_found_and_all_is_as_before(tmp_path: Path):
    # 8 samples of 5 ms: 40 ms a step, of which nearly all is loading. Workers that sleep at the
    # same time share it.
    work = training(DataLoader(Sleepy(0.005), batch_size=8))
    before = state_bytes(work)
    found = wb.tune(work, budget=40, only=("workers",), folder=tmp_path / "tuning", progress=False)
    assert (found.best.workers or 0) >= 2, found
    kept = [attempt for attempt in found.attempts if attempt.kept]
    assert kept[0].origin.startswith("WB1")  # the worst finding comes first
    assert kept[0].ratio < 0.8
    assert kept[0].parity is not None
    assert kept[0].parity.ok
    assert "num_workers=" in found.code()
    assert state_bytes(work) == before
    # All of it is on disk: what was asked and answered, and the profiles.
    assert len(list((tmp_path / "tuning/trials").glob("*.json"))) >= 3
    assert wb.runs(tmp_path / "tuning/profiles").names


@pytest.mark.slow
def test_what_changes_the_numbers_is_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Under autocast this model does half the work, and answers something else."""

    class Cheating(Watching):
        def forward(self, batch: Tensor) -> Tensor:
            cheat = torch.is_autocast_enabled("cpu")
            busy(0.01 if cheat else 0.04)
            answer = super().forward(batch)
            return answer * 1.5 if cheat else answer

    offering(monkeypatch, Settings(precision="bf16"))
    found = wb.tune(
        training(model=Cheating(lambda _: None)), budget=60, folder=tmp_path / "t", progress=False
    )
    (attempt,) = found.attempts
    assert attempt.high < 1  # it is faster,
    assert attempt.parity.verdict in {"differs", "diverges"}  # computes other numbers,
    assert attempt.decision == "reverted"  # and so is not kept
    assert found.best == Settings()
    assert "its numbers differ" in found.history or "diverges" in found.history


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_only_the_loader_is_swept_once_and_its_trials_are_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    work = training(DataLoader(Sleepy(0.005), batch_size=8))
    found = wb.tune(work, only="loader", budget=40, folder=tmp_path / "t", progress=False)
    assert found.sweep is not None
    assert found.best == found.sweep.settings
    assert (found.best.workers or 0) >= 2, found
    (kept,) = [attempt for attempt in found.attempts if attempt.kept]
    assert kept.origin == "loader"
    assert kept.parity.ok
    assert found.figure().text() == found.sweep.figure().text()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was swept again")

    if found.ended == "nothing left":  # else it would go on, as it should
        monkeypatch.setattr("workbench.tuning.loading.sweep_loader", never)
        again = wb.tune(work, only="loader", folder=tmp_path / "t", progress=False)
        assert again == found


def slower(batch: Tensor) -> None:
    """Three times the work under autocast."""
    busy(0.03 if torch.is_autocast_enabled("cpu") else 0.01)


def test_nothing_helps_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    offering(monkeypatch, Settings(precision="bf16"))
    work = training(model=Watching(slower))
    found = wb.tune(work, budget=40, folder=tmp_path / "t", progress=False)
    assert found.best == Settings()
    assert found.ended == "nothing left"
    assert "nothing that was tried helps" in found.sentence
    assert found.attempts[0].decision == "dropped"  # at once: its first steps exclude a gain
    assert found.attempts[0].blocks == 1
    assert found.code().startswith("# Nothing")


@pytest.mark.slow
def test_a_larger_batch_is_compared_by_sample_and_names_the_learning_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A step takes 20 ms whatever it holds: a sample of 16 takes half as long as one of 8."""
    offering(monkeypatch, Settings(batch_size=16))
    work = training(model=Watching(lambda _: busy(0.02)))
    found = wb.tune(work, budget=60, folder=tmp_path / "t", progress=False)
    (attempt,) = found.attempts
    assert (attempt.kept, attempt.per) == (True, "sample"), found
    assert 0.4 < attempt.ratio < 0.7
    assert "check it by training" in found.history
    assert "Adam: × 1.41" in found.history  # the square root of 2: named, not applied
    assert work.optimizers[0].param_groups[0]["lr"] == 0.01
    assert "batch_size=16" in found.code()


def test_refused_failing_and_too_large_changes_are_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def small(batch: Tensor) -> None:
        if len(batch) == 512:
            raise torch.OutOfMemoryError("out of memory")
        if len(batch) == 128:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        if len(batch) == 64:
            raise MemoryError
        if torch.is_autocast_enabled("cpu"):
            raise ValueError("no bf16 here")

    sizes = [Settings(batch_size=n) for n in (512, 128, 64)]
    offering(monkeypatch, *sizes, Settings(precision="bf16"), Settings(channels_last=True))
    work = training(DataLoader(rows(1024), batch_size=8), Watching(small))
    before = state_bytes(work)
    found = wb.tune(work, budget=30, folder=tmp_path / "t", progress=False)
    assert [each.outcome for each in found.attempts] == [
        *("out_of_memory", "out_of_memory", "out_of_memory"),
        *("error", "refused"),
    ]
    assert "batch 512 (offer): out of memory; everything was put back" in found.history
    assert "ValueError: no bf16 here" in found.history
    assert "no 4-d weights" in found.history
    assert state_bytes(work) == before
    assert list(found.trials["outcome"])[1:] == [each.outcome for each in found.attempts]


def test_what_cannot_fit_is_refused_before_it_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    offering(monkeypatch, Settings(batch_size=10**12))
    work = training(DataLoader(rows(), batch_size=8))
    found = wb.tune(work, budget=30, folder=tmp_path / "t", progress=False)
    (attempt,) = found.attempts
    assert (attempt.outcome, attempt.decision) == ("refused", "not tried")
    assert "more of memory, of which" in attempt.reason


@pytest.mark.slow
def test_the_same_folder_goes_on_and_measures_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def half(batch: Tensor) -> None:
        busy(0.005 if torch.is_autocast_enabled("cpu") else 0.02)

    changes = Settings(precision="bf16"), Settings(channels_last=True)
    offering(monkeypatch, *changes)
    work = training(model=Watching(half))
    first = wb.tune(work, budget=60, folder=tmp_path / "t", progress=False)
    assert first.best.precision == "bf16", first

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was measured again")

    for name in ("first_look", "diagnosis", "parity"):
        monkeypatch.setattr(walk, name, never)
    monkeypatch.setattr(walk.Ring, "fight", never)
    again = wb.tune(work, budget=60, folder=tmp_path / "t", progress=False)
    assert again == first
    assert again.history == first.history
    with pytest.raises(SettingError, match=r"the tuning of something else.*title was"):
        wb.tune(training(name="other"), folder=tmp_path / "t", progress=False)


@pytest.mark.slow
def test_an_interrupt_gives_the_result_so_far_and_puts_all_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = itertools.count()

    def watch(batch: Tensor) -> None:
        if torch.is_autocast_enabled("cpu") and next(calls) == 8:  # in its first block
            raise KeyboardInterrupt

    offering(monkeypatch, Settings(precision="bf16"), Settings(optimizer="fused"))
    work = training(DataLoader(rows(), batch_size=8, num_workers=1), Watching(watch))
    before = state_bytes(work)
    found = wb.tune(work, budget=60, folder=tmp_path / "t", progress=False)
    assert found.ended == "interrupted"
    assert [each.outcome for each in found.attempts] == ["not_measured"]
    assert "it was interrupted" in found.history
    assert state_bytes(work) == before
    # It goes on where it was: the loop as it is is known, the change is tried again.
    tried = next(calls)
    resumed = wb.tune(work, budget=6, folder=tmp_path / "t", progress=False)
    assert resumed.look == found.look
    assert next(calls) > tried + 1


@pytest.mark.slow
def test_the_budget_is_kept_within_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    offering(monkeypatch, *(Settings(threads=n) for n in range(1, 200)))
    work = training(model=Watching(lambda _: time.sleep(0.05)))
    began = time.monotonic()
    found = wb.tune(work, budget=8, folder=tmp_path / "t", progress=False)
    # A block here is (1 lead + 4 steps) × 50 ms; setting up and imports get some seconds.
    assert time.monotonic() - began < 8 + 6
    assert found.ended == "budget"
    assert "the budget is spent" in found.history


def test_a_bound_below_the_noise_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    offering(monkeypatch, Settings(precision="bf16"), bound=0.0001)
    found = wb.tune(training(), budget=30, folder=tmp_path / "t", progress=False)
    (attempt,) = found.attempts
    assert attempt.decision == "not tried"
    assert "it could gain at most < 0.1 %" in attempt.reason


def test_it_shows_itself_as_page_text_figure_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    offering(monkeypatch, Settings(precision="bf16"), Settings(channels_last=True))
    work = training(name="<b>mine</b>", model=Watching(slower))
    found = wb.tune(work, budget=30, folder=tmp_path / "t", progress=False)
    shown = found._repr_mimebundle_()
    assert "&lt;b&gt;mine" in shown["text/html"]
    assert "<b>mine" not in shown["text/html"]
    assert "\ufffd" not in shown["text/html"]  # lines of code stay lines
    assert max(map(len, shown["text/plain"].splitlines())) <= 80
    assert found.figure().measured
    assert "precision=bf16" in found.figure().text()
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["schema"] == "workbench.tuning/1"
    assert [each["outcome"] for each in document["trials"]] == ["measured", "refused"]
    assert document["trials"][1]["step_ns"] is None
    assert list(found.pareto["time_ns"]) == sorted(found.pareto["time_ns"])


def test_a_new_folder_is_made_and_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    offering(monkeypatch)
    monkeypatch.chdir(tmp_path)
    places = [wb.tune(training(), budget=10, progress=False).folder for _ in range(2)]
    assert [place.name for place in places] == ["Sequential-tuning", "Sequential-tuning-2"]
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match="holds other things"):
        wb.tune(training(), folder=full, progress=False)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: wb.tune(training(), budget="soon"), SettingError, "'5 min'"),
        (lambda: wb.tune(training(), budget=0), SettingError, "positive"),
        (lambda: wb.tune(training(), only="speed"), SettingError, "no setting"),
        (lambda: wb.tune(torch.nn.Linear(2, 2)), WorkloadError, "needs a Workload"),
    ],
)
def test_what_makes_no_sense_is_one_error(call: Callable[[], Any], error: type, said: str):
    with pytest.raises(error, match=said):
        call()


def test_a_loop_that_fails_as_it_is_is_an_error_of_the_workload(tmp_path: Path):
    def broken(batch: Tensor) -> None:
        raise ValueError("wrong shape")

    with pytest.raises(WorkloadError, match="wrong shape"):
        wb.tune(training(model=Watching(broken)), folder=tmp_path / "t", progress=False)
    assert not list(tmp_path.iterdir())


def test_offers_name_what_helps_most_first_and_refuse_with_the_reason():
    shares = offered.Shares(input=0.9)
    effective = {"workers": 0, "batch_size": 8, "precision": "fp32", "device": "cpu"}
    found = offered.from_offers(training(), effective, shares, None)
    first = found[0].change.changes()
    assert "workers" in first  # nine tenths of a step wait for data
    refused = {str(each.change): each.refused for each in found if each.refused}
    assert "no 4-d weights" in refused["channels_last=True"]
    assert all(each.change.clip_norm is None for each in found)  # it changes the training
    asked = offered.from_offers(training(), effective, shares, ("clip_norm",))
    assert [each.change for each in asked] == [Settings(clip_norm=1.0)]
