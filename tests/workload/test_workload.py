"""Which workloads are refused when they are described, and what does the message advise?"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from workbench.errors import WorkloadError
from workbench.workload import Workload, prepare

_DATA = TensorDataset(torch.ones(4, 2), torch.zeros(4, dtype=torch.long))
_MODEL = nn.Linear(2, 2)

_OPTIMIZER = torch.optim.SGD(_MODEL.parameters())


async def _batches_later() -> AsyncIterator[Tensor]:
    yield torch.ones(2)


@pytest.mark.parametrize(
    ("model", "data", "others", "match"),
    [
        (3, _DATA, {}, "model is a int, which cannot be called"),
        (nn.Linear, _DATA, {}, "model is the class Linear: give an instance"),
        (nn.Linear(2, 2, device="meta"), _DATA, {}, "meta device.*to_empty"),
        (nn.LazyLinear(2), _DATA, {}, "lazy parameters.*call the model once"),
        (abs, _DATA, {"loss": functional.cross_entropy}, "training needs a torch.nn.Module"),
        (_MODEL, (x for x in _DATA), {}, "read only once: give a function"),
        (_MODEL, iter([1]), {}, "read only once"),
        (_MODEL, TensorDataset, {}, "data is the class TensorDataset: give an instance"),
        (_MODEL, torch.ones(2), {}, r"data=\[batch\]"),
        (_MODEL, {"x": torch.ones(2)}, {}, r"data=\[batch\]"),
        (_MODEL, "path/to/data", {}, "data is a str; give a Dataset"),
        (_MODEL, None, {}, "data is a NoneType, which cannot be iterated"),
        (_MODEL, 5, {}, "data is a int, which cannot be iterated"),
        (_MODEL, DataLoader(_DATA), {"batch_size": 4}, r"Settings\(batch_size=...\)"),
        (_MODEL, _DATA, {"batch_size": 0}, "at least 1"),
        (_MODEL, _DATA, {"batch_size": True}, "whole number"),
        (_MODEL, _DATA, {"loss": 3}, "loss=3 cannot be called"),
        (_MODEL, _DATA, {"loss": nn.MSELoss}, "loss is the class MSELoss: give an instance"),
        (_MODEL, _DATA, {"optimizer": "adam"}, "give a torch.optim.Optimizer"),
        (_MODEL, _DATA, {"optimizer": [_OPTIMIZER, 3]}, "optimizer holds a int"),
        (nn.Linear(2, 2), _DATA, {"optimizer": _OPTIMIZER}, "updates none of the model's"),
        (_MODEL, _DATA, {"scheduler": 3}, "give a learning-rate scheduler"),
        (
            _MODEL,
            _DATA,
            {"scheduler": torch.optim.lr_scheduler.StepLR(_OPTIMIZER, 1)},
            "scheduler is given without optimizer",
        ),
        (
            _MODEL,
            _DATA,
            {
                "optimizer": _OPTIMIZER,
                "scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(_OPTIMIZER),
            },
            "needs a validation metric",
        ),
        (_MODEL, _DATA, {"step": 3}, "step=3 cannot be called"),
        (_MODEL, _DATA, {"step": lambda batch: None}, r"called as step\(model, batch\)"),
        (
            _MODEL,
            _DATA,
            {"step": lambda model, batch: None, "loss": functional.cross_entropy},
            "loss and step are both given",
        ),
        (_MODEL, _DATA, {"name": 5}, "name=5 must be text"),
        (_MODEL, _DATA, {"device": "graphics card"}, "not a device; give for instance 'cpu'"),
    ],
)
def test_a_workload_that_cannot_run_is_refused_when_it_is_made(
    model: Any, data: Any, others: dict[str, Any], match: str
) -> None:
    with pytest.raises(WorkloadError, match=match):
        Workload(model, data, **others)


def test_a_missing_device_is_named_together_with_those_that_are_there() -> None:
    work = Workload(_MODEL, _DATA, device="cuda:77")
    with pytest.raises(WorkloadError, match=r"'cuda:77' is not available.*there is cpu"):
        prepare(work).__enter__()


def test_a_data_set_gets_batches_of_32_and_the_run_says_so() -> None:
    work = Workload(_MODEL, _DATA, loss=functional.cross_entropy)
    with prepare(work) as training:
        assert training.effective["batch_size"] == 32
        assert training.effective["sampler"] == "RandomSampler"
        assert any("batch size 32" in note for note in training.notes)
        assert any("no optimizer: forward and backward only" in note for note in training.notes)


@pytest.mark.parametrize(
    "data",
    [
        DataLoader(_DATA, batch_size=2),
        [(torch.ones(2, 2), torch.zeros(2, dtype=torch.long))] * 2,
        lambda: DataLoader(_DATA, batch_size=2),
        lambda: ((torch.ones(2, 2), torch.zeros(2, dtype=torch.long)) for _ in range(2)),
    ],
)
def test_every_kind_of_data_goes_on_over_epochs(data: Any) -> None:
    work = Workload(_MODEL, data, loss=functional.cross_entropy)
    with prepare(work) as training:
        for _ in range(5):
            training.step(next(training.batches()))
        assert training.epochs == 2
        assert training.samples_per_step == 2


class OnceOnly:
    """Looks like a collection, but its batches are gone after the first epoch."""

    def __init__(self) -> None:
        self._batches = iter([(torch.ones(2, 2), torch.zeros(2, dtype=torch.long))])

    def __iter__(self) -> Any:
        return self._batches


def test_data_that_gives_batches_only_once_is_found_out() -> None:
    work = Workload(_MODEL, OnceOnly(), loss=functional.cross_entropy)
    with prepare(work) as training:
        training.step(next(training.batches()))
        with pytest.raises(WorkloadError, match="gave batches once and none afterwards"):
            next(training.batches())


class Unsized(Dataset[Tensor]):
    """Samples without a number of samples."""

    def __getitem__(self, index: int) -> Tensor:
        return torch.ones(2)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (TensorDataset(torch.ones(0, 2)), r"\(TensorDataset\) gave no batch: it is empty"),
        (Unsized(), r"Unsized has no __len__.*IterableDataset"),
        (lambda: None, "data function gave NoneType; it must return"),
        (lambda: 5, "data function gave int; it must return"),
        (_batches_later, "data function gave async_generator; it must return"),
    ],
)
@pytest.mark.parametrize("step", [None, lambda model, batch: None])
def test_data_without_samples_is_refused_with_the_remedy(data: Any, match: str, step: Any) -> None:
    """In order (inference) and shuffled (a step), because torch looks only before shuffling."""
    with pytest.raises(WorkloadError, match=match), prepare(Workload(_MODEL, data, step=step)):
        pass


def test_drop_last_that_drops_everything_is_named() -> None:
    loader = DataLoader(_DATA, batch_size=8, drop_last=True)
    work = Workload(_MODEL, loader, loss=functional.cross_entropy)
    with (
        prepare(work) as training,
        pytest.raises(WorkloadError, match="drop_last=True it needs at least 8 samples"),
    ):
        next(training.batches())


def test_it_shows_itself_in_one_line() -> None:
    work = Workload(_MODEL, _DATA, loss=functional.cross_entropy, name="toy")
    assert repr(work) == "Workload(toy, TensorDataset, training)"
