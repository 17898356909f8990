"""Tensors of unusual kinds, and callers in unusual modes."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Workload, prepare

TARGETS = torch.arange(24) % 3


def test_a_sparse_gradient_that_is_filled_with_zeros_has_its_indices_again() -> None:
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(10, 8, sparse=True)
    model = nn.Sequential(bag, nn.Linear(8, 3))
    model(torch.tensor([[1, 7]])).sum().backward()
    gradient = bag.weight.grad
    assert gradient is not None
    before = gradient.clone().coalesce()
    assert before.indices().tolist() == [[1, 7]]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randint(0, 10, (24, 5)), TARGETS)
    work = Workload(model, data, loss=functional.cross_entropy, optimizer=optimizer, batch_size=4)
    with prepare(work, Settings(set_to_none=False)) as training:
        for _ in range(2):
            training.step(next(training.batches()))
    assert bag.weight.grad is gradient
    after = gradient.coalesce()
    assert after.indices().tolist() == [[1, 7]]
    assert torch.equal(after.values(), before.values())


def test_weights_are_cast_to_ordinary_tensors_inside_inference_mode() -> None:
    model = nn.Linear(8, 3)
    weight, numbers = model.weight, model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = TensorDataset(torch.randn(24, 8), TARGETS)
    work = Workload(model, rows, loss=functional.cross_entropy, optimizer=optimizer, batch_size=4)
    with torch.inference_mode(), prepare(work, Settings(precision="bf16_pure")) as training:
        loss: Tensor | None = training.step(next(training.batches()))
    assert loss is not None
    assert loss.dtype is torch.bfloat16
    assert model.weight is weight
    assert not model.weight.is_inference()
    assert torch.equal(model.weight, numbers)


@pytest.mark.parametrize("values", [{"precision": "bf16_pure"}, {"channels_last": True}], ids=str)
def test_weights_made_in_inference_mode_are_not_exchanged(values: dict[str, Any]) -> None:
    with torch.inference_mode():
        model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten(), nn.Linear(16, 2)).eval()
    work = Workload(model, TensorDataset(torch.randn(8, 3, 2, 2)), batch_size=4)
    with pytest.raises(SettingError, match="inference_mode"), prepare(work, Settings(**values)):
        pass
    with prepare(work, Settings(precision="bf16")) as training:  # which exchanges nothing
        training.step(next(training.batches()))
