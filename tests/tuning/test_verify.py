"""A switch is applied, measured against the loop as it is, and all of it is put back."""

import errno
import itertools
import json
import os
import signal
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

import workbench as wb
from tests.tuning.loops import Sleepy, Watching, rows, state_bytes, training
from tests.tuning.made import found
from tests.tuning.planted import Clock, Costly, network
from workbench.errors import SettingError, WorkloadError
from workbench.settings import Parallel, Settings
from workbench.statistics.change import Change
from workbench.tuning.attempt import joined
from workbench.tuning.fair import fair_blocks
from workbench.tuning.verify import _left_out

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_a_finding_is_applied_measured_and_kept_on_disk_and_all_is_as_before(
    planted_time: type[Clock], tmp_path: Path
):
    # 8 samples of 5 ms and a step of 20: workers take the 40 ms off the loop, a third is left.
    work = training(DataLoader(Costly(5), batch_size=8), network(20))
    before = state_bytes(work)
    answer = wb.verify(work, found(speedup_at_most=50.0), steps=3, folder=tmp_path, progress=False)
    assert answer.advice == "keep", answer
    assert answer.change.ratio == pytest.approx(20 / 60, rel=0.02)
    assert answer.bound.held is True
    assert answer.parity.verdict == "as_expected"
    told = {(each.where, each.name) for each in answer.differences}
    assert ("in force", "workers") in told
    assert ("data", "first samples") not in told
    kept = json.loads(answer.folder.read_text())
    assert kept["advice"] == "keep"
    # Both Runs have the step times of the fair measurement, and a window that says where.
    assert answer.before.record.timings.blocks[1:] == [
        len(each.step_ns) for each in answer.fair.trials[0].blocks[1:]
    ]
    assert answer.after.record.settings == {"workers": 2}
    assert answer.compare().breakdown is not None
    assert [run.name for run in wb.runs(tmp_path)] == [answer.before.name, answer.after.name]
    assert state_bytes(work) == before


@pytest.mark.soak
def test_a_loader_that_really_is_slow_is_cured(tmp_path: Path):
    # 8 samples of 20 ms: 160 ms a step, of which nearly all is loading; two workers halve it.
    work = training(DataLoader(Sleepy(0.02), batch_size=8))
    answer = wb.verify(work, found(speedup_at_most=50.0), folder=tmp_path, progress=False)
    assert answer.advice == "keep", answer
    assert 0.4 < answer.change.ratio < 0.8
    assert answer.bound.held is True


def test_out_of_memory_of_the_setting_is_the_answer(tmp_path: Path):
    def small_device(batch: Tensor) -> None:
        if len(batch) > 8:
            raise torch.OutOfMemoryError("out of memory")

    work = training(model=Watching(small_device))
    before = state_bytes(work)
    answer = wb.verify(work, wb.Settings(batch_size=64), steps=3, folder=tmp_path, progress=False)
    assert answer.sentence.startswith("batch_size=64: out of memory")
    assert answer.advice == "revert"
    assert state_bytes(work) == before


def test_an_interrupt_keeps_what_was_measured_and_says_where(tmp_path: Path):
    steps = itertools.count(1)

    def watch(batch: Tensor) -> None:
        if next(steps) == 30:
            raise KeyboardInterrupt

    work = training(DataLoader(rows(), batch_size=8, num_workers=1), Watching(watch))
    before = state_bytes(work)
    with pytest.raises(KeyboardInterrupt) as caught:
        wb.verify(work, wb.Settings(precision="bf16"), steps=3, folder=tmp_path, progress=False)
    (kept,) = tmp_path.glob("*.verification.json")
    assert kept.name in caught.value.__notes__[0]
    assert json.loads(kept.read_text())["ended"] == "interrupted"
    assert state_bytes(work) == before


def test_a_loop_that_fails_as_it_is_is_an_error_of_the_workload(tmp_path: Path):
    def broken(batch: Tensor) -> None:
        raise ValueError("wrong shape")

    with pytest.raises(WorkloadError, match="fails without the setting: ValueError: wrong shape"):
        wb.verify(
            training(model=Watching(broken)),
            wb.Settings(precision="bf16"),
            steps=3,
            folder=tmp_path,
            progress=False,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (found(setting=None), "no setting .*verifiable.* By hand: Load in worker processes"),
        (found(setting=None, call="loader.pin()"), r"In torch: loader\.pin\(\)"),
        (wb.Settings(), "change nothing"),
        ({"workers": 2}, "finding or Settings, not a dict"),
    ],
)
def test_what_cannot_be_applied_says_what_to_do(asked: Any, said: str, tmp_path: Path):
    with pytest.raises(SettingError, match=said):
        wb.verify(training(), asked, folder=tmp_path)


def test_ranks_that_cannot_be_started_are_refused_before_anything_runs(tmp_path: Path):
    many = wb.Settings(parallel=Parallel(mode="ddp", world_size=4096))
    with pytest.raises(SettingError, match=r"with 4096 ranks cannot act: there are"):
        wb.verify(training(), many, folder=tmp_path)
    assert not list(tmp_path.iterdir()), "nothing was measured, and nothing is kept"


def test_something_else_than_a_workload_is_refused(tmp_path: Path):
    with pytest.raises(WorkloadError, match="needs a Workload"):
        wb.verify(torch.nn.Linear(2, 2), wb.Settings(workers=2), folder=tmp_path)


@pytest.mark.parametrize(
    ("base", "change", "both"),
    [
        (
            {"precision": "bf16", "workers": 2},
            {"workers": 4},
            {"precision": "bf16", "workers": 4},
        ),
        ({"precision": "fp16", "loss_scale": 1024.0}, {"precision": "bf16"}, {}),
        ({"workers": 2, "prefetch_factor": 4, "threads": 1}, {"workers": 0}, {"threads": 1}),
        ({"compile": True, "compile_dynamic": True}, {"compile": False}, {}),
        ({"precision": "tf32"}, {"matmul_precision": "highest"}, {}),
        ({"pin_memory": True, "non_blocking": True}, {"pin_memory": False}, {}),
    ],
)
def test_settings_are_added_to_those_that_they_are_compared_with(
    base: dict[str, Any], change: dict[str, Any], both: dict[str, Any]
):
    """What of the base contradicts the change gives way: a scale has no place in bf16."""
    found = joined(Settings(**base), Settings(**change))
    assert found == Settings(**both | change)


def test_a_verified_change_that_pushes_something_out_says_so():
    scaled, bf16 = (
        Settings(precision="fp16", loss_scale=64.0, threads=1),
        Settings(precision="bf16"),
    )
    (said,) = _left_out(scaled, bf16, joined(scaled, bf16))
    assert said == "loss_scale=64.0 contradicts precision=bf16 and was left out with it"


def trial_of(work: wb.Workload, setting: wb.Settings) -> Change:
    runs = fair_blocks(work, [None, setting, None], steps=10, blocks=4, time_limit_s=200)
    return runs.change(0, 1, again=2)


def really(batch: Tensor) -> None:
    """20 ms of processor time, under autocast half of it."""
    end = time.thread_time() + (0.01 if torch.is_autocast_enabled("cpu") else 0.02)
    while time.thread_time() < end:
        pass


def test_a_trial_finds_half_the_work_and_nothing_where_nothing_is_switched(
    planted_time: type[Clock],
):
    work = training(model=network(20, 10))
    change = trial_of(work, wb.Settings(precision="bf16"))
    assert change.verdict == "faster", change
    assert change.ratio == pytest.approx(0.5, rel=0.01)
    assert trial_of(work, wb.Settings(accumulation=1)).verdict == "cannot_tell"


@pytest.mark.soak
def test_a_real_trial_finds_half_the_work():
    change = trial_of(training(model=Watching(really)), wb.Settings(precision="bf16"))
    assert change.verdict == "faster", change
    assert change.ratio == pytest.approx(0.55, abs=0.12)  # the network itself takes a little


@pytest.mark.soak
def test_a_real_trial_finds_nothing_where_nothing_is_switched():
    change = trial_of(training(model=Watching(really)), wb.Settings(accumulation=1))
    # One trial in a hundred is wrong by chance, but never by much.
    assert change.verdict == "cannot_tell" or abs(change.ratio - 1) < 0.05, change


def test_a_disk_that_is_full_at_the_end_does_not_lose_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(self: Path, *args: Any, **options: Any) -> int:
        self.write_bytes(b"{")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    found = wb.verify(
        training(),
        wb.Settings(optimizer="single"),
        steps=3,
        blocks=1,
        record=None,
        folder=tmp_path,
        progress=False,
    )
    assert found.folder is None
    assert any("No space left on device" in note for note in found.notes)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_amid_a_collection_is_not_lost(monkeypatch: pytest.MonkeyPatch):
    # Python drops what a callback of the collector raises; an interrupt must arrive all the same.
    class Loop:
        pass

    def collect() -> int:
        one = Loop()
        _ = weakref.ref(one, lambda _: os.kill(os.getpid(), signal.SIGINT))
        kept = [_]
        del one
        return len(kept)

    monkeypatch.setattr("workbench.tuning.block.gc.collect", collect)
    runs = fair_blocks(training(), [None], steps=3, blocks=1, time_limit_s=60)
    assert runs.ended == "interrupted"


def test_a_run_whose_other_side_was_not_profiled_says_where_its_verdict_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Profiling the second side fails: the first one's Run stays, and is no riddle."""
    from workbench.tuning.keeping import profiled

    def once(work: Any, settings: Settings, *args: Any, **options: Any) -> Any:
        if settings.optimizer == "single":
            raise RuntimeError("no more memory")
        return profiled(work, settings, *args, **options)

    monkeypatch.setattr(sys.modules["workbench.tuning.verify"], "profiled", once)
    change = wb.Settings(optimizer="single")
    found = wb.verify(training(), change, steps=3, blocks=1, folder=tmp_path, progress=False)
    assert any("a side was not profiled" in note for note in found.notes)
    assert found.folder is not None
    (left,) = wb.runs(tmp_path).names()
    note = wb.open(tmp_path / left).notes[-1]
    assert note.startswith("the other side of this measurement was not profiled")
    assert note.endswith(f"is in {found.folder.name}, beside this folder")
