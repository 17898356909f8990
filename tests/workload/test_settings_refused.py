"""Which settings cannot act on which object, and does the error say why?"""

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from tests.workload.zoo import ZOO, ConvNet, Stream, pictures
from workbench.errors import SettingError, WorkloadError
from workbench.settings import Settings
from workbench.workload import Workload, prepare


class Undivided(IterableDataset[Tensor]):
    """Every worker would read all of it."""

    def __iter__(self) -> Iterator[Tensor]:
        return iter(torch.arange(10.0))


class EvenOnly(BatchSampler):
    """Makes batches in its own way."""


class Endless(DataLoader[Any]):
    """A loader with an iteration of its own, as some libraries have."""

    def __iter__(self) -> Any:
        while True:
            yield from super().__iter__()


def _pictures(data: Any, **others: Any) -> Workload:
    return Workload(ConvNet(), data, loss=functional.cross_entropy, **others)


def _inference(data: Any) -> Workload:
    return Workload(nn.Identity(), data)


_OWN_BATCHES = DataLoader(
    pictures(), batch_sampler=EvenOnly(SequentialSampler(pictures()), 4, drop_last=False)
)


@pytest.mark.parametrize(
    ("work", "settings", "match"),
    [
        (_inference(DataLoader(Undivided())), Settings(workers=2), "every sample would come 2"),
        (_inference(DataLoader(Undivided(), batch_size=None)), Settings(batch_size=2), "there"),
        (_pictures(_OWN_BATCHES), Settings(batch_size=2), "its batch_sampler makes the batches"),
        (ZOO["custom_loader"](), Settings(workers=1), r"Shuffler\) gives batches"),
        (_pictures(Endless(pictures())), Settings(workers=1), "an iteration of its own"),
        (_pictures([]), Settings(batch_size=2, workers=1), "batch_size, workers cannot act"),
        (_pictures(lambda: iter([])), Settings(workers=1), "function gives an iterator"),
        (_pictures(pictures()), Settings(prefetch_factor=2), "no worker processes.*workers=1"),
        (_pictures(pictures()), Settings(persistent_workers=True), "no worker processes"),
        (_pictures(pictures()), Settings(pin_memory=True), "pin_memory=True cannot act"),
        (_pictures(pictures()), Settings(non_blocking=True), "non_blocking=True cannot act"),
        (_pictures(pictures()), Settings(precision="tf32"), "TF32 is a mode of NVIDIA"),
        (ZOO["rnn"](), Settings(channels_last=True), "no 4-d weights"),
        (ZOO["inference"](), Settings(accumulation=2), "no gradient to accumulate"),
        (ZOO["custom_loader"](), Settings(precision="fp16"), "cannot act|refused"),
    ],
)
def test_a_setting_that_cannot_act_is_refused_with_the_reason(
    work: Workload, settings: Settings, match: str
) -> None:
    with pytest.raises(SettingError, match=match):
        prepare(work, settings).__enter__()


def test_fp16_is_refused_exactly_where_the_cpu_has_no_instructions_for_it() -> None:
    """Emulated fp16 took 12 to 20 times as long as fp32 on such a machine."""
    native = torch.ops.mkldnn._is_mkldnn_fp16_supported()
    work = ZOO["cnn"]()
    if native:
        with prepare(work, Settings(precision="fp16")) as training:
            assert training.effective["precision"] == "fp16"
    else:
        with pytest.raises(SettingError, match="no fp16 instructions"):
            prepare(work, Settings(precision="fp16")).__enter__()


def test_an_iterable_data_set_that_divides_itself_may_have_workers() -> None:
    """Twelve samples stay twelve, with two workers as with none."""
    work = Workload(nn.Linear(3, 2), DataLoader(Stream(), 4), loss=functional.cross_entropy)
    for workers in (0, 2):
        with prepare(work, Settings(workers=workers)) as training:
            samples = 0
            while training.epochs == 0:
                batch = next(training.batches())
                samples += len(batch[1]) if training.epochs == 0 else 0
            assert samples == 12


def test_a_single_worker_beside_the_training_duplicates_nothing() -> None:
    with prepare(_inference(DataLoader(Undivided())), Settings(workers=1)) as training:
        assert training.effective["workers"] == 1


def test_data_that_spawn_cannot_pickle_gives_one_clear_error() -> None:
    loader = DataLoader(
        pictures(),
        num_workers=1,
        multiprocessing_context="spawn",
        collate_fn=lambda samples: samples,
    )
    with (
        prepare(_inference(loader)) as training,
        pytest.raises(WorkloadError, match=r"by spawn.*cannot be pickled.*workers=0"),
    ):
        next(training.batches())


def test_a_data_set_of_the_notebook_cannot_be_found_by_a_fresh_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It pickles here, but the worker could not import it and would die without a word."""

    class InNotebook(Stream):
        __module__ = "__main__"

    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))
    loader = DataLoader(InNotebook(), num_workers=1, multiprocessing_context="spawn")
    with (
        prepare(_inference(loader)) as training,
        pytest.raises(WorkloadError, match=r"InNotebook is defined in the notebook.*workers=0"),
    ):
        next(training.batches())


def test_a_loader_keeps_everything_that_no_setting_names() -> None:
    loader = DataLoader(
        pictures(),
        batch_size=4,
        shuffle=True,
        generator=torch.Generator(),
        collate_fn=list,
        drop_last=True,
        num_workers=2,
        worker_init_fn=print,
        timeout=60,
        in_order=False,
    )
    before = dict(loader.__dict__)
    work = Workload(nn.Identity(), loader)
    with prepare(work, Settings(batch_size=2, prefetch_factor=5)) as training:
        assert training._plan is not None
        copy = training._plan.source.loader
        assert copy is not None
        changed = {name for name, value in copy.__dict__.items() if before[name] is not value}
        assert changed == {"batch_size", "batch_sampler", "prefetch_factor"}
        assert copy.batch_sampler.sampler is loader.sampler  # type: ignore[union-attr]
    assert loader.__dict__ == before


def test_nothing_is_left_changed_by_a_refusal() -> None:
    work = ZOO["cnn"]()
    order = [p.stride() for p in work.model.parameters()]
    with pytest.raises(SettingError):
        prepare(work, Settings(channels_last=True, persistent_workers=True)).__enter__()
    assert [p.stride() for p in work.model.parameters()] == order
