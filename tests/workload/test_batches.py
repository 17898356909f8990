"""What does a batch mean, and what is one step?"""

from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from workbench.errors import SettingError, WorkloadError
from workbench.settings import Settings
from workbench.workload import Control, Workload, prepare


class Spy(nn.Module):
    """A linear model that remembers how it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.log: list[Any] = []

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        self.log.append((inputs, named))
        return self.weight * sum([*inputs, *named.values()])


class OneInput(nn.Module):
    """Takes no target."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * 2


class TwoInputs(nn.Module):
    """Takes two inputs and no target."""

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right


class WithLoss(nn.Module):
    """Computes its loss itself, and returns it the way it was told to."""

    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((1,), 3.0))
        self.wrap = wrap

    def forward(self, x: Tensor) -> Any:
        return self.wrap(loss=(self.weight * x).mean())


def _first_step(work: Workload, settings: Settings | None = None) -> Tensor | None:
    with prepare(work, settings) as training:
        return training.step(next(training.batches()))


def _difference(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).mean()


def test_the_last_member_of_a_tuple_is_the_target_the_others_are_inputs() -> None:
    work = Workload(Spy(), [(torch.ones(2), torch.ones(2), torch.ones(2))], loss=_difference)
    loss = _first_step(work)
    assert loss is not None
    assert loss.item() == 1 * (1 + 1) - 1


def test_a_dictionary_goes_in_by_name_and_the_loss_gets_output_and_batch() -> None:
    batch = {"a": torch.ones(2), "b": torch.full((2,), 2.0)}
    work = Workload(Spy(), [batch], loss=lambda output, given: (output - given["a"]).mean())
    loss = _first_step(work)
    assert loss is not None
    assert loss.item() == 1 * (1 + 2) - 1


Output = namedtuple("Output", "loss")


@pytest.mark.parametrize("wrap", [dict, Output])
def test_a_model_may_return_its_own_loss_as_attribute_or_entry(wrap: Any) -> None:
    model = WithLoss(wrap)
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    loss = _first_step(Workload(model, [{"x": torch.full((2,), 5.0)}], optimizer=optimizer))
    assert loss is not None
    assert loss.item() == 3 * 5


def test_without_loss_and_optimizer_the_model_only_infers() -> None:
    model = Spy()
    work = Workload(model, [(torch.ones(2), torch.zeros(2))])
    with prepare(work) as training:
        assert training.step(next(training.batches())) is None
        [(inputs, _)] = model.log
        assert len(inputs) == 1
        assert model.weight.grad is None
        assert training.effective["step"] == "inference"
        assert any("training mode" in note for note in training.notes)
    assert model.log == []


@pytest.mark.parametrize(
    ("model", "batch"),
    [
        (OneInput(), torch.ones(2)),
        (OneInput(), [torch.ones(2)]),
        (OneInput(), (torch.ones(2), torch.ones(2))),
        (TwoInputs(), (torch.ones(2), torch.ones(2))),
        (TwoInputs(), (torch.ones(2), torch.ones(2), torch.ones(2))),
        (TwoInputs(), {"left": torch.ones(2), "right": torch.ones(2)}),
    ],
)
def test_inference_takes_unlabelled_and_labelled_batches(model: nn.Module, batch: Any) -> None:
    assert _first_step(Workload(model, [batch])) is None


def test_gradients_are_on_even_where_the_caller_switched_them_off() -> None:
    work = Workload(Spy(), [(torch.ones(2), torch.ones(2))], loss=_difference)
    with torch.no_grad():
        assert _first_step(work) is not None
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("data", "loss", "match"),
    [
        ([torch.ones(2)], _difference, "a batch is a Tensor.*step=my_step"),
        ([(torch.ones(2),)], _difference, "has 1 member.*needs input and target"),
        ([(torch.ones(2), torch.ones(2))], lambda o, t: o - t, r"shape \(2,\).*reduction='mean'"),
        ([(torch.ones(2), torch.ones(2))], lambda o, t: 1.0, "is a float.*scalar tensor"),
        (
            [(torch.ones(2), torch.ones(2))],
            lambda o, t: o.detach().sum(),
            "does not depend on any parameter",
        ),
        ([], _difference, "gave no batch: it is empty"),
    ],
)
def test_what_cannot_be_trained_on_is_said_with_the_remedy(
    data: Any, loss: Any, match: str
) -> None:
    with pytest.raises(WorkloadError, match=match):
        _first_step(Workload(Spy(), data, loss=loss))


def test_an_optimizer_without_loss_asks_for_one() -> None:
    model = Spy()
    optimizer = torch.optim.SGD(model.parameters())
    with pytest.raises(WorkloadError, match="no loss: give loss="):
        _first_step(Workload(model, [(torch.ones(2), torch.ones(2))], optimizer=optimizer))
    work = Workload(OneInput(), [{"inputs": torch.ones(2)}], loss=None, step=None)
    assert _first_step(work) is None


def test_an_output_without_loss_asks_for_labels() -> None:
    model = Spy()
    optimizer = torch.optim.SGD(model.parameters())
    with pytest.raises(WorkloadError, match="has no loss: put the labels into the batch"):
        _first_step(Workload(model, [{"a": torch.ones(2)}], optimizer=optimizer))


def test_micro_batches_of_unequal_size_give_the_gradient_of_the_whole_batch() -> None:
    """Five samples in two parts: 2 and 3. The mean over the batch is 3, whatever the cut."""
    inputs = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    data = [(inputs, torch.zeros(5))]
    for accumulation in (1, 2, 3, 5, 8):
        model = Spy()
        work = Workload(model, data, loss=_difference)
        with prepare(work, Settings(accumulation=accumulation)) as training:
            loss = training.step(next(training.batches()))
            assert len(model.log) == min(accumulation, 5)
            assert model.weight.grad is not None
            assert model.weight.grad.item() == pytest.approx(3)
            assert loss is not None
            assert loss.item() == pytest.approx(3)


def test_accumulation_needs_a_common_first_dimension() -> None:
    work = Workload(Spy(), [(torch.ones(4, 1), torch.ones(2))], loss=_difference)
    with pytest.raises(SettingError, match="no common first dimension"):
        _first_step(work, Settings(accumulation=2))


def test_one_step_is_one_batch_one_optimizer_step_and_one_scheduler_step() -> None:
    model = Spy()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    data = DataLoader(TensorDataset(torch.ones(6), torch.ones(6)), batch_size=4)
    work = Workload(model, data, loss=_difference, optimizer=optimizer, scheduler=scheduler)
    with prepare(work, Settings(accumulation=2)) as training:
        assert training.samples_per_step == 4
        for _ in range(4):
            training.step(next(training.batches()))
        assert optimizer.param_groups[0]["lr"] == 0.5**4
        assert training.samples_per_step == (4 + 2 + 4 + 2) / 4
        assert training.epochs == 1
    assert optimizer.param_groups[0]["lr"] == 1.0


def test_several_optimizers_all_step() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizers = [torch.optim.SGD(part.parameters(), lr=1.0) for part in model]
    data = [(torch.ones(3, 2), torch.zeros(3, dtype=torch.long))]
    work = Workload(model, data, loss=functional.cross_entropy, optimizer=optimizers)
    before = [p.detach().clone() for p in model.parameters()]
    with prepare(work) as training:
        training.step(next(training.batches()))
        now = list(model.parameters())
        assert not any(torch.equal(a, b) for a, b in zip(before, now, strict=True))


def test_ranges_are_named_for_the_breakdown() -> None:
    model = Spy()
    optimizer = torch.optim.SGD(model.parameters())
    data = DataLoader(TensorDataset(torch.ones(4), torch.ones(4)), batch_size=2)
    work = Workload(model, data, loss=_difference, optimizer=optimizer)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with prepare(work) as training, torch.profiler.profile(activities=activities) as profiler:
        training.step(next(training.batches()))
    names = {event.name for event in profiler.events()}
    assert {"forward", "backward", "workbench.input"} <= names
    assert {"Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"} <= names


def test_a_step_with_control_can_be_given_every_setting() -> None:
    model = Spy()
    optimizer = torch.optim.SGD(model.parameters())
    dtypes = []

    def step(model: nn.Module, batch: Any, control: Control) -> Tensor:
        optimizer.zero_grad()
        for part, share in control.micro_batches(batch):
            inputs, targets = control.to_device(part)
            with control.forward():
                dtypes.append((inputs[:, None] @ targets[None, :]).dtype)
                loss = (model(inputs) - targets).mean() * share
            control.backward(loss)
        control.optimizer_step(optimizer)
        return loss

    work = Workload(model, [(torch.ones(4), torch.ones(4))], step=step)
    seen: list[torch.dtype] = dtypes
    with prepare(work, Settings(precision="bf16", accumulation=2)) as training:
        training.step(next(training.batches()))
        assert seen == [torch.bfloat16, torch.bfloat16]


def test_a_step_without_control_runs_under_autocast_but_refuses_what_lies_inside_it() -> None:
    seen: list[torch.dtype] = []

    def step(model: nn.Module, batch: Tensor) -> None:
        seen.append((batch @ batch).dtype)
        assert seen == [torch.bfloat16]

    work = Workload(OneInput(), [torch.ones(2, 2)], step=step)
    assert _first_step(work, Settings(precision="bf16")) is None
    for setting in (Settings(accumulation=2), Settings(precision="fp16")):
        with pytest.raises(SettingError, match=r"cannot act"):
            _first_step(work, setting)
    with pytest.raises(SettingError, match=r"step\(model, batch, control\)"):
        _first_step(work, Settings(accumulation=2))
