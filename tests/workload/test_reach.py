"""What can a step reach, and is it put back? What is left alone?"""

import functools
import gc
import random
import threading
import traceback
import weakref
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.workload.state_bytes import difference, state_bytes
from workbench.workload import Workload, prepare

_BATCH = torch.ones(2)
shared = {"count": 0}
replaced: list[int] = [1]


def _run(step: Any, model: Any = None) -> None:
    with prepare(Workload(model or nn.Identity(), [_BATCH], step=step)) as training:
        for _ in range(2):
            training.step(next(training.batches()))


def _check(step: Any, *reached: Any) -> None:
    before = state_bytes(*reached)
    step(nn.Identity(), _BATCH)
    assert state_bytes(*reached) != before, "the step changes nothing: this test is blind"
    before = state_bytes(*reached)
    _run(step)
    after = state_bytes(*reached)
    assert before == after, difference(before, after)


def test_containers_and_tensors_that_a_step_closes_over() -> None:
    average = [torch.zeros(2), torch.zeros(2, dtype=torch.bfloat16)]
    counts: defaultdict[str, int] = defaultdict(int)
    recent: deque[int] = deque(maxlen=3)
    names = {"a"}
    ordered = OrderedDict(first=1, second=2)
    table = np.zeros(3)

    def step(model: nn.Module, batch: Tensor) -> None:
        average[0] += batch
        average[1] = average[1] + batch
        counts["steps"] += 1
        recent.append(counts["steps"])
        names.add(str(len(names)))
        ordered.move_to_end("first")
        ordered["new"] = counts["steps"]
        table[:] += 1

    _check(step, average, counts, recent, names, ordered, table)


def test_random_generators_of_every_kind() -> None:
    python, numpy_new = random.Random(1), np.random.default_rng(1)
    numpy_old, ours = np.random.RandomState(1), torch.Generator().manual_seed(1)

    def states() -> list[Any]:
        old = repr(numpy_old.get_state())
        new = repr(numpy_new.bit_generator.state)
        return [python.getstate(), new, old, ours.get_state().tolist()]

    def step(model: nn.Module, batch: Tensor) -> None:
        python.random()
        numpy_new.random()
        numpy_old.random()
        torch.rand(1, generator=ours)

    before = [str(state) for state in states()]
    _run(step)
    assert [str(state) for state in states()] == before
    step(nn.Identity(), _BATCH)
    assert all(a != b for a, b in zip(before, [str(s) for s in states()], strict=True))


class Trainer:
    """Holds model, optimizer and counters, and writes a log file, as many trainers do."""

    def __init__(self, log: Path) -> None:
        self.model = nn.Linear(2, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.steps = 0
        self.log = log.open("w")

    def train(self, model: Any, batch: Tensor) -> None:
        self.steps += 1
        self.fresh = self.steps
        self.optimizer.zero_grad()
        self.model(batch).sum().backward()
        self.optimizer.step()
        self.log.write(f"{self.steps}\n")
        shared["count"] += 1

    def __call__(self, model: Any, batch: Tensor) -> None:
        self.train(model, batch)


@pytest.mark.parametrize("way", ["method", "partial", "call"])
def test_a_trainer_object_that_the_step_belongs_to(way: str, tmp_path: Path) -> None:
    trainer = Trainer(tmp_path / "log.txt")
    step = {
        "method": trainer.train,
        "partial": functools.partial(Trainer.train, trainer),
        "call": trainer,
    }[way]
    _check(step, trainer.model, trainer.optimizer, trainer.__dict__, shared)
    trainer.log.close()
    assert (tmp_path / "log.txt").read_text().split() == ["1", "2", "3"]


def _helper() -> None:
    global replaced  # noqa: PLW0603
    replaced = [*replaced, 2]
    shared["count"] += 1


def _global_step(model: nn.Module, batch: Tensor) -> None:
    _helper()


def test_globals_that_a_step_names_through_another_function() -> None:
    kept, values = replaced, dict(shared)
    _run(_global_step)
    assert replaced is kept
    assert shared == values


class Slotted:
    """Has no ``__dict__``."""

    __slots__ = ("count", "later")

    def __init__(self) -> None:
        self.count = 0


def test_an_object_with_slots() -> None:
    target = Slotted()

    def step(model: nn.Module, batch: Tensor) -> None:
        target.count += 1
        target.later = 1

    _run(step)
    assert target.count == 0
    assert not hasattr(target, "later")


class Prefetcher:
    """Another thread may be using this object: only training state in it is put back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.served = 0
        self.model = nn.Linear(1, 1)


def test_an_object_with_a_lock_keeps_its_own_attributes() -> None:
    prefetcher = Prefetcher()
    weight = prefetcher.model.weight.item()

    def step(model: nn.Module, batch: Tensor) -> None:
        with prefetcher.lock, torch.no_grad():
            prefetcher.served += 1
            prefetcher.model.weight.add_(1)

    _run(step)
    assert prefetcher.served == 2
    assert prefetcher.model.weight.item() == weight


def test_hooks_and_submodules_that_a_step_adds_are_gone() -> None:
    model = nn.Sequential(nn.Linear(2, 2))

    def step(model: nn.Module, batch: Tensor) -> None:
        model.register_forward_hook(lambda *_: None)
        model[0].weight.register_hook(lambda grad: grad)
        model.add_module(f"extra{len(model)}", nn.Identity())
        model.weight_copy = model[0].weight.detach().clone()
        model.register_buffer("extra", torch.ones(1))

    before = state_bytes(model)
    _run(step, model)
    after = state_bytes(model)
    assert before == after, difference(before, after)


def test_tied_weights_views_and_shared_storages() -> None:
    flat = torch.arange(6.0)
    model = nn.Linear(3, 1, bias=False)
    model.weight = nn.Parameter(flat[:3].view(1, 3))
    rest = flat[3:].expand(2, 3)

    def step(model: Any, batch: Tensor) -> None:
        with torch.no_grad():
            flat.mul_(2)
            model.weight.add_(1)
        assert rest.shape == (2, 3)

    before = state_bytes(model, flat, rest)
    _run(step, model)
    assert state_bytes(model, flat, rest) == before


def test_a_graph_that_the_user_still_holds_stays_valid() -> None:
    """A weight that a run changed and put back counts as unchanged for a pending backward."""
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.ones(1, 2, requires_grad=True)
    pending = model(model(inputs)).sum()
    data = [(torch.ones(1, 2), torch.zeros(1, dtype=torch.long))]
    loss = nn.functional.cross_entropy
    with prepare(Workload(model, data, loss=loss, optimizer=optimizer)) as training:
        training.step(next(training.batches()))
    pending.backward()
    assert inputs.grad is not None


class Owner(nn.Module):
    """Remembers its last input, as careless models do."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.last = inputs
        return inputs.sum() * self.factor

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(1))


class Alive:
    """The batches that somebody still holds; a class, because runs put lists and sets back."""

    batches: ClassVar[weakref.WeakSet[Tensor]] = weakref.WeakSet()


def _watched_batches() -> list[tuple[Tensor, Tensor]]:
    batch = torch.ones(3)
    Alive.batches.add(batch)
    return [(batch, torch.ones(1))]


def test_nothing_of_a_run_is_kept_alive() -> None:
    model = Owner()
    alive = weakref.ref(model)
    work = Workload(model, _watched_batches, loss=lambda output, target: output)
    with prepare(work) as training:
        training.step(next(training.batches()))
        assert len(Alive.batches) == 1
    assert len(Alive.batches) == 0
    del model, work
    gc.collect()
    assert alive() is None


def test_an_error_that_is_kept_does_not_keep_the_batch() -> None:
    """A notebook keeps the last error: our frames are emptied, the user's are for a debugger."""

    def loss(output: Tensor, target: Tensor) -> Tensor:
        raise ArithmeticError

    kept = _failing(Workload(Owner(), _watched_batches, loss=loss))
    frames = [frame.f_code.co_name for frame, _ in traceback.walk_tb(kept.__traceback__)]
    assert frames[0] == "_failing"
    assert frames[-1] == "loss"
    gc.collect()
    assert len(Alive.batches) == 0


def _failing(work: Workload) -> BaseException:
    try:
        with prepare(work) as training:
            training.step(next(training.batches()))
    except ArithmeticError as error:
        return error
    raise AssertionError("the loss fails")


def test_a_training_that_is_over_says_so() -> None:
    with prepare(Workload(nn.Identity(), [_BATCH])) as training:
        batches = training.batches()
        next(batches)
    with pytest.raises(Exception, match="the training is over"):
        next(batches)
    with pytest.raises(Exception, match="the training is over"):
        training.step(_BATCH)


def test_it_works_in_a_thread_of_its_own() -> None:
    model = nn.Linear(2, 2)
    before = state_bytes(model)
    losses: list[Any] = []

    def run() -> None:
        data = [(torch.ones(1, 2), torch.zeros(1, dtype=torch.long))]
        with prepare(Workload(model, data, loss=nn.functional.cross_entropy)) as training:
            losses.append(training.step(next(training.batches())))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert losses[0] > 0
    assert state_bytes(model) == before
