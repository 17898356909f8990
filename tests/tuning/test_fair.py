"""Are settings measured under the same conditions, and is what goes wrong with one a result?"""

import itertools
import threading
import time
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

import workbench as wb
from tests.tuning.loops import Sleepy, Watching, rows, state_bytes, training
from tests.tuning.planted import Clock, Costly, network
from workbench.errors import SettingError, TimeLimitError
from workbench.recording.progress import Progress
from workbench.tuning import fair
from workbench.tuning.block import Measuring
from workbench.tuning.fair import FairRuns, _Draft, _Turns, fair_blocks
from workbench.tuning.samples import same_samples

pytestmark = pytest.mark.slow


def measured(work: wb.Workload, *settings: wb.Settings | None, **options: Any) -> FairRuns:
    options = {"steps": 4, "blocks": 2, "time_limit_s": 240, **options}
    return fair_blocks(work, settings, **options)


def test_the_settings_take_turns_and_every_block_starts_from_the_same_place():
    work = training()
    before = state_bytes(work)
    runs = measured(work, None, wb.Settings(precision="bf16"), None, blocks=4)
    assert runs.ended == "finished"
    assert [trial.reason for trial in runs.trials] == [None] * 3
    # Three settings there and back, then from the next one on: 0 1 2, 2 1 0, 1 2 0, 0 2 1.
    order = [[block.position for block in trial.blocks] for trial in runs.trials]
    assert order == [[0, 5, 8, 9], [1, 4, 6, 11], [2, 3, 7, 10]]
    # A drift adds as much to each: 0 + 5 + 8 + 9 = 1 + 4 + 6 + 11 = 2 + 3 + 7 + 10 = 22.
    assert {sum(places) for places in order} == {22}
    blocks = [block for trial in runs.trials for block in trial.blocks]
    assert {block.sample_hashes for block in blocks} == {blocks[0].sample_hashes}
    assert len(blocks[0].sample_hashes) == 8  # the one batch of the lead
    # Dropout, shuffling and weights are the same: so are the losses of every fp32 block.
    assert len({block.losses for trial in runs.trials[::2] for block in trial.blocks}) == 1
    assert len({block.losses for block in runs.trials[1].blocks}) == 1
    assert runs.trials[0].blocks[0].losses != runs.trials[1].blocks[0].losses
    assert state_bytes(work) == before


def test_a_larger_batch_reads_the_same_samples_in_fewer_steps():
    runs = measured(training(), None, wb.Settings(batch_size=16), steps=8)
    small, large = runs.trials
    assert [len(block.step_ns) + len(block.left_out_ns) for block in small.blocks] == [9, 9]
    assert [len(block.step_ns) + len(block.left_out_ns) for block in large.blocks] == [5, 5]
    assert (small.samples_per_step, large.samples_per_step) == (8, 16)
    assert same_samples(small.blocks[0].sample_hashes, large.blocks[0].sample_hashes)
    assert runs.per(0, 1) == "sample"
    assert runs.trials[1].sample_ns == pytest.approx(large.step_ns / 16)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_that_hide_a_slow_loader_are_faster(planted_time: type[Clock]):
    # 8 samples of 5 ms and a step of 20: 60 ms, of which workers take 40 off the loop.
    work = training(DataLoader(Costly(5), batch_size=8), network(20))
    runs = measured(work, None, wb.Settings(workers=2), blocks=4)
    change = runs.change()
    assert change.verdict == "faster", change
    assert change.ratio == pytest.approx(20 / 60, rel=0.02)
    assert all(wait >= 39e6 for block in runs.trials[0].blocks for wait in block.input_ns)
    assert all(wait < 1e6 for block in runs.trials[1].blocks for wait in block.input_ns)
    assert runs.trials[1].workers_bytes > 0


@pytest.mark.soak
def test_workers_that_really_hide_a_slow_loader_are_faster():
    # 8 samples of 20 ms: 160 ms a batch in this process; two workers sleep at the same time, and
    # hand over two batches together: one step waits 160 ms, the next not at all, 80 ms on average.
    work = training(DataLoader(Sleepy(0.02), batch_size=8))
    runs = measured(work, None, wb.Settings(workers=2), steps=6, blocks=4)
    change = runs.change()
    assert change.verdict == "faster", change
    assert 0.4 < change.ratio < 0.75  # a median of single steps would say 0.05 or 1
    assert all(wait > 120e6 for block in runs.trials[0].blocks for wait in block.input_ns)


def test_out_of_memory_is_the_result_of_its_setting_and_stops_no_other():
    def small_device(batch: Tensor) -> None:
        if len(batch) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB.")

    work = training(model=Watching(small_device))
    before = state_bytes(work)
    runs = measured(work, None, wb.Settings(batch_size=64), None)
    assert [trial.outcome for trial in runs.trials] == ["measured", "out_of_memory", "measured"]
    assert "9 GiB" in runs.trials[1].reason
    assert runs.ended == "finished"
    assert state_bytes(work) == before


def test_what_cannot_act_is_refused_and_what_raises_is_told():
    def picky(batch: Tensor) -> None:
        if len(batch) == 16:
            raise ValueError("expected 8 rows")

    work = training(model=Watching(picky))
    refused, failing = wb.Settings(channels_last=True), wb.Settings(batch_size=16)
    runs = measured(work, None, refused, failing)
    assert [trial.outcome for trial in runs.trials] == ["measured", "refused", "error"]
    assert "no 4-d weights" in runs.trials[1].reason
    assert runs.trials[2].reason == "ValueError: expected 8 rows"


@pytest.mark.soak
def test_a_setting_that_hangs_times_out_and_leaves_time_for_the_others():
    def hanging(batch: Tensor) -> None:
        if len(batch) == 16:
            time.sleep(60)

    work = training(model=Watching(hanging))
    runs = measured(work, wb.Settings(batch_size=16), None, time_limit_s=20)
    assert [trial.outcome for trial in runs.trials] == ["timed_out", "measured"]
    assert runs.ended == "finished"


def test_what_takes_too_long_is_the_result_of_its_setting_and_each_gets_its_part(
    monkeypatch: pytest.MonkeyPatch,
):
    """Of 240 s the first of two gets half for its first steps; the last may take what is left."""
    limits, warm_up = list[float](), fair.warm_up

    def noted(*args: Any, time_limit_s: float, **options: Any) -> Any:
        limits.append(time_limit_s)
        if len(limits) == 1:
            raise TimeLimitError("a step hangs")
        return warm_up(*args, time_limit_s=time_limit_s, **options)

    monkeypatch.setattr(fair, "warm_up", noted)
    runs = measured(training(), wb.Settings(batch_size=16), None)
    assert [trial.outcome for trial in runs.trials] == ["timed_out", "measured"]
    assert runs.ended == "finished"
    assert limits[0] == pytest.approx(120, abs=1)
    assert 120 < limits[1] <= 240


def test_the_time_limit_ends_it_with_what_there_is(
    planted_time: type[Clock], monkeypatch: pytest.MonkeyPatch
):
    """80 rounds of 40 steps of a second do not fit into 300 s by the planted clock."""
    monkeypatch.setattr(fair, "time", Clock)
    runs = measured(
        training(model=network(1000)), None, None, steps=40, blocks=40, time_limit_s=300
    )
    assert runs.ended == "time_limit"
    assert any("instead of 40" in note for note in runs.notes)
    assert all(trial.outcome in {"measured", "not_measured"} for trial in runs.trials)


@pytest.mark.parametrize("how", ["asked", "interrupt"])
def test_an_interrupt_keeps_the_blocks_so_far_and_puts_everything_back(how: str):
    steps = itertools.count(1)  # a list would be put back to its old members after every block
    late = threading.Event()

    def watch(batch: Tensor) -> None:
        if next(steps) >= 20:
            late.set()
            if how == "interrupt":
                raise KeyboardInterrupt

    work = training(DataLoader(rows(), batch_size=8, num_workers=1), Watching(watch))
    before = state_bytes(work)
    asked = late.is_set if how == "asked" else None
    runs = measured(work, None, None, blocks=10, interrupted=asked)
    assert runs.ended == "interrupted"
    assert 0 < len(runs.trials[0].blocks) < 10
    assert state_bytes(work) == before


def test_what_was_compiled_is_told_apart_from_the_steps_with_its_break_even_step():
    from tests.tuning.made import block, trial

    # 5 s of compilation, then 100 ms instead of 150 ms a step: 100 steps until it has paid.
    slow = trial([block([150] * 3)] * 4)
    fast = trial([block([100] * 3)] * 4, warmup_ms=[5100, 100], compiled=True)
    runs = FairRuns(trials=(slow, fast), ended="finished", elapsed_s=1.0)
    assert fast.compile_s == pytest.approx(5.0)
    assert runs.break_even_steps() == 100
    never = FairRuns(trials=(fast, slow), ended="finished", elapsed_s=1.0)
    assert never.break_even_steps() is None


@pytest.mark.parametrize(
    ("settings", "options", "said"),
    [
        ([], {}, "no setting"),
        ([{"workers": 2}], {}, "wb.Settings"),
        ([None], {"steps": 2}, "at least 3"),
        ([None], {"blocks": 0}, "at least 1"),
        ([None], {"time_limit_s": 0}, "positive"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(settings: list, options: dict, said: str):
    with pytest.raises(SettingError, match=said):
        measured(training(), *settings, **options)


def test_it_runs_in_a_thread_beside_a_notebook_and_is_stopped_from_outside():
    late, found = threading.Event(), list[FairRuns]()
    steps = itertools.count(1)

    def watch(batch: Tensor) -> None:
        if next(steps) >= 20:
            late.set()

    work = training(model=Watching(watch))
    before = state_bytes(work)

    def run() -> None:
        found.append(measured(work, None, None, blocks=10, interrupted=late.is_set))

    beside = threading.Thread(target=run)
    beside.start()
    beside.join(120)
    assert found[0].ended == "interrupted"
    assert found[0].trials[0].blocks
    assert state_bytes(work) == before


def test_a_smaller_batch_is_planned_with_the_steps_that_it_takes():
    drafts = [_Draft(settings=wb.Settings()), _Draft(settings=wb.Settings(batch_size=1))]
    for draft, size in zip(drafts, (64, 1), strict=True):
        draft.warm_step_s, draft.effective = 0.01, {"batch_size": size}
    turns = _Turns(
        work=training(),
        drafts=drafts,
        steps=20,
        measuring=Measuring(progress=Progress(shown=False, title="")),
        until=time.monotonic() + 26.0,
        warmed={},
    )
    turns._shorten(2)
    # One step of 64 and 64 of one are 65 of 10 ms, twice 1.3 s. 0.8 of not quite 26 s hold 15 of
    # these, and one is for the lead.
    assert turns.steps == 14
