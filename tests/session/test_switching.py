"""What a switch of settings does to the samples, the weights and the loader of a training."""

import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch

from tests.session.driving import WAIT_S, run
from tests.session.loops import Remembered
from workbench.session import Session
from workbench.settings import Settings
from workbench.workload import Workload

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]


@pytest.mark.parametrize("change", [{"workers": 2}, {"batch_size": 6}, {"drop_last": True}])
def test_the_rest_of_a_shuffled_epoch_is_the_same_after_a_switch(
    tmp_path: Path, change: dict[str, int]
) -> None:
    """48 samples in batches of 4: after 5 batches 28 are left, whoever loads them."""
    plain = Remembered()
    with Session(plain.work, folder=tmp_path) as session:
        run(session, 12)
        order = plain.seen.numbers[:48]
    assert sorted(order) == list(range(48))
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 5)
        session.apply(Settings(**change))
        run(session, 7)
        seen = loop.seen.numbers
        assert session.changes[0].error is None
        assert seen[:44] == order[:44]
        if "workers" in change:
            assert seen == order


def test_a_switch_at_the_very_end_of_an_epoch_begins_the_next_one(tmp_path: Path) -> None:
    """Of 12 batches of 4 none is left; later 4 samples are, too few for a whole batch of 6."""
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 12)
        session.apply(Settings(workers=1))
        run(session, 12)
        assert sorted(loop.seen.numbers[48:]) == list(range(48))
        run(session, 11)
        session.apply(Settings(batch_size=6, drop_last=True))
        run(session, 8)
        assert sorted(loop.seen.numbers[-48:]) == list(range(48))
        assert session.state.epoch == 3


def test_switching_workers_leaves_the_training_as_it_would_have_been(tmp_path: Path) -> None:
    """Dropout draws random numbers: the losses are equal only if none went to the switch."""
    plain, loop = Remembered(), Remembered()
    with Session(plain.work, folder=tmp_path) as session:
        run(session, 9)
        wanted = list(plain.seen.losses)
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 4)
        session.apply(Settings(workers=1))
        run(session, 3)
        session.undo()
        run(session, 2)
        assert loop.seen.losses == wanted


def test_an_iterable_data_set_begins_anew_and_says_so(tmp_path: Path) -> None:
    class Stream(torch.utils.data.IterableDataset[torch.Tensor]):
        def __iter__(self) -> Iterator[torch.Tensor]:
            return iter(torch.arange(12.0).reshape(12, 1))

    seen: list[float] = []

    def step(model: torch.nn.Module, batch: torch.Tensor) -> None:
        seen.extend(batch.flatten().tolist())

    loader = torch.utils.data.DataLoader(Stream(), batch_size=2)
    work = Workload(torch.nn.Linear(1, 1), loader, step=step)
    with Session(work, folder=tmp_path) as session:
        run(session, 2)
        session.apply(Settings(threads=1))  # no matter of the loader: it goes on
        run(session, 1)
        session.apply(Settings(batch_size=3))
        run(session, 1)
        assert seen == [0, 1, 2, 3, 4, 5, 0, 1, 2]
        notes = [change.note for change in session.changes]
    assert notes[0] is None
    assert "the epoch began anew" in str(notes[1])


def test_batches_out_of_order_are_all_seen_once(tmp_path: Path) -> None:
    loop = Remembered(workers=2, in_order=False)
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 3)
        session.apply(Settings(workers=0))
        run(session, 9)
        assert sorted(loop.seen.numbers) == list(range(48))


def test_the_model_sees_the_precision_and_the_loader_the_workers(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 1)
        session.apply(Settings(precision="bf16"))
        run(session, 1)
        session.apply(Settings(workers=2))
        run(session, 1)
        assert len(active_children()) == 2
        session.replace(Settings())
        run(session, 1)
        assert loop.model.dtypes == [torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]
        assert not active_children()
        assert [change.step for change in session.changes] == [1, 2, 3]


def test_weights_go_on_through_bf16_and_back(tmp_path: Path) -> None:
    loop = Remembered()
    weight = loop.model.head.weight
    with Session(loop.work, Settings(precision="bf16_pure"), folder=tmp_path) as session:
        run(session, 2)
        assert weight.dtype is torch.bfloat16
        now = weight.detach().float()
        session.replace(Settings())
        session.pause()
        until = time.monotonic() + WAIT_S
        while not session.changes and time.monotonic() < until:
            time.sleep(0.01)
        assert weight.dtype is torch.float32
        assert torch.equal(weight, now)
        state = loop.optimizer.state[weight]
        assert state["exp_avg"].dtype is torch.float32
        run(session, 1)


def test_a_setting_that_cannot_act_is_told_and_the_last_ones_stay(tmp_path: Path) -> None:
    loop = Remembered()
    with Session(loop.work, Settings(batch_size=6), folder=tmp_path) as session:
        run(session, 1)
        session.apply(Settings(channels_last=True))
        run(session, 1)
        (change,) = session.changes
        assert "no 4-d weights" in str(change.error)
        assert change.applied_ns is None
        assert session.state.settings == Settings(batch_size=6)
        assert loop.model.sizes == [6, 6]


def test_out_of_memory_puts_the_last_settings_back_and_trains_the_samples(tmp_path: Path) -> None:
    loop = Remembered()

    def full(target: torch.Tensor) -> None:
        if len(target) > 8:
            raise torch.OutOfMemoryError("tried to allocate 80 GiB")

    loop.seen.before = full
    with Session(loop.work, folder=tmp_path) as session:
        run(session, 2)
        session.apply(Settings(batch_size=16))
        run(session, 10)
        assert session.state.settings == Settings()
        assert "Memory ran out" in str(session.changes[0].error)
        assert "batch_size" in str(session.state.remedy)
        assert "weights" in str(session.state.remedy), "what the model holds is told"
        assert sorted(loop.seen.numbers) == list(range(48))  # none was lost with the batch of 16
        assert loop.optimizer.state  # and it goes on
