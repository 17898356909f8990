"""Does a search find what helps, leave what does not, and put everything back?"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

import workbench as wb
from tests.tuning.loops import Sleepy, Watching, rows, state_bytes, training
from tests.tuning.planted import Clock, Costly, costing, network
from workbench.errors import RunError, SettingError, WorkloadError
from workbench.settings import Settings
from workbench.tuning import candidates as offered
from workbench.tuning import search as walk
from workbench.tuning.candidates import Candidate
from workbench.tuning.sweep import LoaderSweep, SweepRow

pytestmark = pytest.mark.slow


def offering(monkeypatch: pytest.MonkeyPatch, *changes: Settings, **more: Any) -> None:
    """Let a search try these changes, and no findings."""
    made = [Candidate(change=change, origin="offer", **more) for change in changes]
    monkeypatch.setattr(walk, "from_offers", lambda *_: made)
    nothing = {"findings": [], "optimizer_share": None}
    monkeypatch.setattr(walk, "diagnosis", lambda *_, **__: nothing)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_for_a_slow_loader_are_found_and_all_is_as_before(
    planted_time: type[Clock], tmp_path: Path
):
    """8 samples of 5 ms and a step of 10: workers take the 40 ms off the loop."""
    work = training(DataLoader(Costly(5), batch_size=8), network(10))
    before = state_bytes(work)
    found = wb.tune(work, budget=600, only=("workers",), folder=tmp_path / "t", progress=False)
    assert found.ended == "nothing left"
    assert (found.best.workers or 0) >= 1, found
    assert "WB101" in found.history
    (kept,) = [attempt for attempt in found.attempts if attempt.kept]
    assert kept.ratio == pytest.approx(10 / 50, rel=0.02)
    assert kept.parity is not None
    assert kept.parity.ok
    assert "num_workers=" in found.code()
    assert state_bytes(work) == before
    # All of it is on disk: what was asked and answered, and the profiles.
    assert len(list((tmp_path / "t/trials").glob("*.json"))) >= 3
    assert wb.runs(tmp_path / "t/profiles").names


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_the_setting_of_a_loader_that_really_is_slow_is_found(tmp_path: Path):
    # 8 samples of 5 ms: 40 ms a step, of which nearly all is loading. Workers that sleep at the
    # same time share it.
    work = training(DataLoader(Sleepy(0.005), batch_size=8))
    found = wb.tune(work, budget=120, only=("workers",), folder=tmp_path / "t", progress=False)
    assert (found.best.workers or 0) >= 2, found
    kept = [attempt for attempt in found.attempts if attempt.kept]
    assert kept[0].origin.startswith("WB1")  # the worst finding comes first
    assert kept[0].ratio < 0.8


def test_what_changes_the_numbers_is_never_kept(
    planted_time: type[Clock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Under autocast this model does a quarter of the work, and answers something else."""

    class Cheating(Watching):
        def forward(self, batch: Tensor) -> Tensor:
            answer = super().forward(batch)
            return answer * 1.5 if torch.is_autocast_enabled("cpu") else answer

    offering(monkeypatch, Settings(precision="bf16"))
    work = training(model=Cheating(costing(40, 10)))
    found = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
    (attempt,) = found.attempts
    assert attempt.ratio == pytest.approx(0.25, rel=0.01)  # it is faster,
    assert attempt.parity.verdict in {"differs", "diverges"}  # computes other numbers,
    assert attempt.decision == "reverted"  # and so is not kept
    assert found.best == Settings()
    assert "its numbers differ" in found.history or "diverges" in found.history


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_only_the_loader_is_really_swept(tmp_path: Path):
    work = training(DataLoader(Sleepy(0.005), batch_size=8))
    found = wb.tune(work, only="loader", budget=120, folder=tmp_path / "t", progress=False)
    assert found.sweep is not None
    assert (found.best.workers or 0) >= 2, found


@pytest.mark.parametrize("only", ["loader", ["loader"]])
def test_only_the_loader_is_swept_once_and_its_trials_are_rows(
    only: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    as_it_is = {"workers": 0, "prefetch_factor": None, "variant": "", "as_it_is": True}
    two = {"workers": 2, "prefetch_factor": 2, "variant": "", "chosen": True}
    usual = {"pin_memory": False, "persistent_workers": False, "batched_fetch": False}
    rows_of = [
        SweepRow(**one, **usual, settings=settings, outcome="measured", step_ns=ns, blocks=4)
        for one, settings, ns in (
            (as_it_is, Settings(), 40e6),
            (two, Settings(workers=2), 20e6),
        )
    ]
    made = LoaderSweep(
        title="Sequential",
        settings=Settings(workers=2),
        sentence="Two workers.",
        rows=tuple(rows_of),
        ended="finished",
        ratio=0.5,
        elapsed_s=1.0,
    )
    times = itertools.count(1)

    def sweep(*_: Any, **__: Any) -> LoaderSweep:
        assert next(times) == 1, "it was swept again"
        return made

    monkeypatch.setattr("workbench.tuning.loading.sweep_loader", sweep)
    work = training()
    found = wb.tune(work, only=only, folder=tmp_path / "t", progress=False)
    assert found.sweep == made
    assert found.best == Settings(workers=2)
    (kept,) = found.attempts
    assert (kept.origin, kept.kept, kept.ratio, kept.blocks) == ("loader", True, 0.5, 4)
    assert kept.parity.ok
    assert found.figure().text() == made.figure().text()
    assert wb.tune(work, only="loader", folder=tmp_path / "t", progress=False) == found


def test_nothing_helps_and_that_is_said(
    planted_time: type[Clock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Three times the work under autocast."""
    offering(monkeypatch, Settings(precision="bf16"))
    work = training(model=network(10, 30))
    found = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
    assert found.best == Settings()
    assert found.ended == "nothing left"
    assert "nothing that was tried helps" in found.sentence
    assert found.attempts[0].decision == "dropped"  # at once: its first steps exclude a gain
    assert found.attempts[0].blocks == 1
    assert found.code().startswith("# Nothing")


def test_a_larger_batch_is_compared_by_sample_and_names_the_learning_rate(
    planted_time: type[Clock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A step takes 20 ms whatever it holds: a sample of 16 takes half as long as one of 8."""
    offering(monkeypatch, Settings(batch_size=16))
    work = training(model=network(20))
    found = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
    (attempt,) = found.attempts
    assert (attempt.kept, attempt.per) == (True, "sample"), found
    assert attempt.ratio == pytest.approx(0.5, rel=0.01)
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
    found = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
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
    found = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
    (attempt,) = found.attempts
    assert (attempt.outcome, attempt.decision) == ("refused", "not tried")
    assert "more of memory, of which" in attempt.reason


def test_the_same_folder_goes_on_and_measures_nothing_again(
    planted_time: type[Clock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    changes = Settings(precision="bf16"), Settings(channels_last=True)
    offering(monkeypatch, *changes)
    work = training(model=network(20, 5))
    first = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
    assert first.best.precision == "bf16", first

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was measured again")

    for name in ("first_look", "diagnosis", "parity"):
        monkeypatch.setattr(walk, name, never)
    monkeypatch.setattr(walk.Ring, "fight", never)
    again = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
    assert again == first
    assert again.history == first.history
    with pytest.raises(SettingError, match=r"the tuning of something else.*title was"):
        wb.tune(training(name="other"), folder=tmp_path / "t", progress=False)


def test_an_interrupt_gives_the_result_so_far_and_puts_all_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = itertools.count()

    def watch(batch: Tensor) -> None:
        if torch.is_autocast_enabled("cpu") and next(calls) in {8, 12}:  # in its first block
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
    resumed = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
    assert resumed.look == found.look
    assert resumed.ended == "interrupted"
    assert next(calls) == 13


def test_nothing_begins_when_the_budget_is_over_and_nothing_may_take_more(
    planted_time: type[Clock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Steps of a second by the planted clock, which the budget goes by here as well."""
    offering(monkeypatch, *(Settings(threads=n) for n in range(1, 200)))
    monkeypatch.setattr(walk, "time", Clock)
    fight, limits = walk.Ring.fight, list[float]()

    def noted(self: Any, *args: Any, limit_s: float) -> Any:
        limits.append(limit_s)
        return fight(self, *args, limit_s=limit_s)

    monkeypatch.setattr(walk.Ring, "fight", noted)
    work = training(model=network(1000))
    found = wb.tune(work, budget=100, folder=tmp_path / "t", progress=False)
    assert found.ended == "budget"
    assert "the budget is spent" in found.history
    assert 0 < len(limits) < 10
    assert limits == sorted(limits, reverse=True)
    # Of 100 s a piece gets a third, later what is left; a pair of blocks takes 2 × (4 + 1) s.
    assert all(10 <= limit <= 100 / 3 for limit in limits)


def test_a_bound_below_the_noise_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    offering(monkeypatch, Settings(precision="bf16"), bound=0.0001)
    found = wb.tune(training(), budget=600, folder=tmp_path / "t", progress=False)
    (attempt,) = found.attempts
    assert attempt.decision == "not tried"
    assert "it could gain at most < 0.1 %" in attempt.reason


def test_it_shows_itself_as_page_text_figure_and_json(
    planted_time: type[Clock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    offering(monkeypatch, Settings(precision="bf16"), Settings(channels_last=True))
    work = training(name="<b>mine</b>", model=network(10, 30))
    found = wb.tune(work, budget=600, folder=tmp_path / "t", progress=False)
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
    places = [wb.tune(training(), budget=600, progress=False).folder for _ in range(2)]
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
