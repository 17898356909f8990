"""Models that are unlike most: profiled as they are, with every byte as before."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import workbench as wb
from tests.workload.state_bytes import difference, state_bytes

pytestmark = pytest.mark.slow


Batch = namedtuple("Batch", "x y")


def batches() -> list[Any]:
    return [(torch.randn(4, 4), torch.tensor([0, 1, 0, 1])) for _ in range(3)]


def trained(model: nn.Module, data: Any = None, make: Any = torch.optim.Adam) -> wb.Workload:
    return wb.Workload(
        model,
        batches() if data is None else data,
        loss=functional.cross_entropy,
        optimizer=make(model.parameters()),
    )


class BuffersOnly(nn.Module):
    """Has numbers, but nothing to train."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(4, 2))
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("scratch", torch.ones(3), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.scratch = self.scratch + 1
        return x @ self.weight


class Restless(nn.Module):
    """Changes itself: attributes, lists, modules, buffers, hooks, and its own parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.history: list[float] = []
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last = x
        self.history.append(float(x.sum()))
        if self.calls == 3:
            self.extra = nn.Linear(2, 2)
            self.register_buffer("late", torch.ones(2))
            self.register_forward_hook(lambda *_: None)
            self.linear.weight = nn.Parameter(self.linear.weight.detach() * 2)
        return self.linear(x)


class Complex(nn.Module):
    """Weights of complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 2, dtype=torch.cfloat))

    def forward(self, x: Tensor) -> Tensor:
        return (x.to(torch.cfloat) @ self.weight).abs()


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(self.first(x)))


class Carrying(nn.Module):
    """A recurrent net that carries its state from batch to batch."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(4, 8), nn.Linear(8, 2)
        self.state: Any = None

    def forward(self, x: Tensor) -> Tensor:
        seen, state = self.cells(x.unsqueeze(0), self.state)
        self.state = tuple(part.detach() for part in state)
        return self.head(seen[0])


class Guarded(nn.Module):
    """Answers for what it has not got with an error of another kind."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise KeyError(name) from None

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


class Bags(nn.Module):
    """Gradients that hold only the rows that were used."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 2, sparse=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.table(x).mean(1)


def shared_storage() -> wb.Workload:
    flat, model = torch.randn(10), nn.Linear(4, 2)
    model.weight.data, model.bias.data = flat[:8].view(2, 4), flat[8:]
    return trained(model)


def steps_in_backward() -> wb.Workload:
    model = nn.Linear(4, 2)
    own = {parameter: torch.optim.Adam([parameter]) for parameter in model.parameters()}

    def update(parameter: Tensor) -> None:
        own[parameter].step()
        own[parameter].zero_grad()

    for parameter in own:
        parameter.register_post_accumulate_grad_hook(update)
    return wb.Workload(model, batches(), loss=functional.cross_entropy)


def functional_only() -> wb.Workload:
    weight = torch.randn(4, 2, requires_grad=True)

    def step(model: Any, batch: Any) -> Tensor:
        loss = functional.cross_entropy(batch[0] @ weight, batch[1])
        (slope,) = torch.autograd.grad(loss, [weight])
        weight.data.sub_(0.1 * slope)
        return loss

    return wb.Workload(None, batches(), step=step)


def frozen_script() -> wb.Workload:
    """TorchScript that was frozen has not even ``training``."""
    return wb.Workload(torch.jit.freeze(torch.jit.script(nn.Linear(4, 2).eval())), batches())


def sparse() -> wb.Workload:
    data = [(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 1]))] * 3
    return trained(Bags(), data, torch.optim.SparseAdam)


def nested() -> wb.Workload:
    lengths = [torch.randn(2, 4), torch.randn(3, 4)]
    return wb.Workload(nn.Linear(4, 2), [torch.nested.nested_tensor(lengths)] * 3)


def left_in_eval() -> wb.Workload:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))
    model[1].eval()
    return trained(model)


ODD: dict[str, Callable[[], wb.Workload]] = {
    "nothing needs a gradient": lambda: wb.Workload(
        nn.Linear(4, 2).requires_grad_(False), batches()
    ),
    "buffers only": lambda: wb.Workload(BuffersOnly(), batches()),
    "no parameters": lambda: wb.Workload(nn.ReLU(), batches()),
    "a function": lambda: wb.Workload(lambda x: x * 2, batches()),
    "restless": lambda: trained(Restless()),
    "complex": lambda: trained(Complex()),
    "tied weights": lambda: trained(Tied()),
    "carried state": lambda: trained(Carrying()),
    "guarded attributes": lambda: trained(Guarded()),
    "data parallel": lambda: trained(nn.DataParallel(nn.Linear(4, 2))),
    "named batches": lambda: trained(nn.Linear(4, 2), [Batch(*batch) for batch in batches()]),
    "amsgrad, fused": lambda: trained(
        nn.Linear(4, 2), make=lambda p: torch.optim.Adam(p, fused=True, amsgrad=True)
    ),
    **{
        make.__name__: make
        for make in (
            *(shared_storage, steps_in_backward, functional_only, frozen_script),
            *(sparse, nested, left_in_eval),
        )
    },
}


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype", "ignore:.*torch.jit")
@pytest.mark.parametrize("name", ODD)
def test_an_odd_model_is_profiled_and_every_byte_is_as_before(name: str) -> None:
    work = ODD[name]()
    parts = (work.model, work.loss, work.optimizer, work.step)
    if name != "frozen_script":  # its graph cannot be walked, and holds its weights as constants
        before = state_bytes(parts)
    run = wb.profile(work, steps=2, progress=False)
    assert run.record is not None
    assert run.record.timings is not None
    assert run.findings is not None
    if name != "frozen_script":
        assert state_bytes(parts) == before, difference(before, state_bytes(parts))


def test_a_schedule_that_ends_says_what_to_do() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    short = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3)
    work = wb.Workload(
        model, batches(), loss=functional.cross_entropy, optimizer=optimizer, scheduler=short
    )
    with pytest.raises(ValueError, match="total steps is 3") as ended:
        wb.profile(work, steps=2, progress=False)
    assert any("leave scheduler out of the Workload" in note for note in ended.value.__notes__)
    assert short.last_epoch == 0


def test_a_step_that_sets_numpy_and_the_default_device_is_undone() -> None:
    def step(model: Any, batch: Any) -> None:
        np.seterr(all="ignore")
        torch.set_default_device("cpu")
        model(batch[0])

    before = np.geterr()
    assert "ignore" not in (before["divide"], before["invalid"])
    wb.profile(wb.Workload(nn.Linear(4, 2), batches(), step=step), steps=2, progress=False)
    assert np.geterr() == before
    assert torch.utils._device.CURRENT_DEVICE is None
