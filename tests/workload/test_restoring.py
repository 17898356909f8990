"""After a run, whatever happened in it, is every byte as it was before?"""

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.workload.state_bytes import difference, process_bytes, state_bytes
from tests.workload.zoo import ZOO, everything
from workbench.settings import Settings
from workbench.workload import Workload, prepare

pytestmark = pytest.mark.slow


_SETTINGS = {
    "as it is": Settings(),
    "bf16 in micro-batches": Settings(precision="bf16", accumulation=2),
    "fp32": Settings(precision="fp32"),
    "workers": Settings(workers=1, prefetch_factor=1, persistent_workers=True),
    "other batches": Settings(batch_size=2),
    "channels last": Settings(channels_last=True),
}
# Which settings can act on which workload: the others are refused, see test_refusals.
_FITTING = {
    "cnn": ("as it is", "bf16 in micro-batches", "workers", "other batches", "channels last"),
    "transformer": ("as it is", "bf16 in micro-batches", "workers", "other batches"),
    "rnn": ("as it is", "bf16 in micro-batches"),
    "frozen": ("as it is", "bf16 in micro-batches", "channels last", "workers"),
    "iterable": ("as it is", "fp32", "workers", "other batches"),
    "custom_loader": ("as it is", "bf16 in micro-batches"),
    "batch_sampler": ("as it is", "channels last", "workers"),
    "inference": ("as it is", "other batches", "channels last"),
    "parametrized": ("as it is", "fp32", "bf16 in micro-batches"),
    "gan": ("as it is", "fp32", "workers", "other batches"),
}
_CASES = [(name, setting) for name, settings in _FITTING.items() for setting in settings]


def _run(
    work: Workload,
    *,
    steps: int,
    settings: Settings | None = None,
    then: Callable[[], object] = lambda: None,
) -> None:
    with prepare(work, settings) as training:
        for _ in range(steps):
            training.step(next(training.batches()))
        then()


class Unchanged:
    """Compares the bytes of a workload and of the process before and after a block."""

    def __init__(self, work: Workload) -> None:
        self._roots = everything(work)

    def __enter__(self) -> None:
        self._before = state_bytes(*self._roots), process_bytes()

    def __exit__(self, *error: object) -> None:
        after = state_bytes(*self._roots), process_bytes()
        for old, new in zip(self._before, after, strict=True):
            assert old == new, difference(old, new)


@pytest.mark.parametrize(("name", "setting"), _CASES)
def test_a_run_leaves_every_byte_as_it_was(name: str, setting: str) -> None:
    work = ZOO[name]()
    with Unchanged(work), prepare(work, _SETTINGS[setting]) as training:
        batches = training.batches()
        while training.epochs == 0:
            training.step(next(batches))


@pytest.mark.parametrize("name", ZOO)
def test_a_run_does_change_the_state_that_is_put_back(name: str) -> None:
    """Guards the test above: a comparison that sees no change proves nothing."""
    work = ZOO[name]()
    before = state_bytes(*everything(work))
    with prepare(work) as training:
        training.step(next(training.batches()))
        during = state_bytes(*everything(work))
    if name != "inference":
        assert during != before


@pytest.mark.parametrize("name", ZOO)
def test_an_error_in_the_third_step_leaves_every_byte_as_it_was(name: str) -> None:
    work = ZOO[name]()
    with Unchanged(work), pytest.raises(ZeroDivisionError):
        _run(work, steps=3, then=lambda: 1 / 0)


class Broken(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Fails at the sixth sample."""

    def __init__(self) -> None:
        self.reads: list[int] = []

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.reads.append(index)
        if index == 5:
            raise KeyError("sample 5 is damaged")
        return torch.ones(3), torch.tensor(index % 2)


def _linear(data: object, **others: object) -> Workload:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    loss = torch.nn.functional.cross_entropy
    return Workload(model, data, loss=loss, optimizer=optimizer, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_the_loader_or_in_a_worker_arrives_and_leaves_nothing(workers: int) -> None:
    loader = torch.utils.data.DataLoader(Broken(), batch_size=2, num_workers=workers)
    work = _linear(loader)
    with Unchanged(work), pytest.raises(KeyError, match="sample 5 is damaged"):
        _run(work, steps=4)


class Deaf(torch.utils.data.Dataset[torch.Tensor]):
    """A sample that never comes, in a worker that ignores being told to end."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while index == 1:
            time.sleep(60)
        return torch.ones(3)


def test_a_worker_that_ignores_being_told_to_end_is_killed() -> None:
    """Torch waits five seconds and then tells it to end, which it ignores."""
    work = Workload(nn.Linear(3, 2), torch.utils.data.DataLoader(Deaf(), num_workers=1))
    with Unchanged(work), prepare(work) as training:
        next(training.batches())
    assert multiprocessing.active_children() == []


def test_the_users_persistent_workers_go_on_undisturbed() -> None:
    """The user is in the middle of an epoch; the run has workers of its own."""
    data = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.zeros(8, dtype=torch.long))
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=1, persistent_workers=True)
    mine = iter(loader)
    next(mine)
    work = _linear(loader)
    with prepare(work) as training:
        for _ in range(6):
            training.step(next(training.batches()))
    assert len(list(mine)) == 3
    mine._shutdown_workers()


def test_flags_that_the_users_step_changes_are_put_back() -> None:
    def step(model: nn.Module, batch: list[torch.Tensor]) -> None:
        torch.set_grad_enabled(False)
        torch.set_num_threads(3)
        torch.set_default_dtype(torch.float64)
        torch.set_float32_matmul_precision("medium")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = True
        os.environ["WORKBENCH_TEST_VARIABLE"] = "set"
        model.train()
        model.requires_grad_(False)
        model.to(torch.bfloat16)

    model = nn.Linear(3, 2).eval()
    work = Workload(model, [[torch.ones(1, 3)]], step=step)
    with Unchanged(work), prepare(work) as training:
        training.step(next(training.batches()))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_training_inside_a_region_without_gradients(mode: Callable[[], Any]) -> None:
    work = ZOO["cnn"]()
    with mode(), Unchanged(work):
        _run(work, steps=2)
    assert torch.is_grad_enabled()


class Interrupted(torch.multiprocessing.Process):
    """The second worker starts, and then something arrives from outside."""

    started = 0

    def start(self) -> None:
        super().start()
        Interrupted.started += 1
        if Interrupted.started == 2:
            raise TimeoutError


def test_workers_that_were_only_half_started_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.multiprocessing, "Process", Interrupted)
    work = ZOO["cnn"]()
    with Unchanged(work), pytest.raises(TimeoutError):
        _run(work, steps=1, settings=Settings(workers=2))
    assert Interrupted.started == 2


class Refusing(torch.Tensor):
    """Wants no function of torch, not even to be asked whether it is a leaf."""

    @classmethod
    def __torch_function__(cls, function: Any, *rest: Any, **more: Any) -> Any:
        raise TypeError(f"{function} is not for me")


def test_a_tensor_whose_class_refuses_every_function_is_put_back() -> None:
    kept = torch.tensor([1.0, 2.0]).as_subclass(Refusing)

    def step(model: nn.Module, batch: Any) -> None:
        with torch._C.DisableTorchFunctionSubclass():
            kept.add_(1)

    _run(Workload(nn.Linear(1, 1), [1, 2], step=step), steps=2)
    assert type(kept) is Refusing
    with torch._C.DisableTorchFunctionSubclass():
        assert kept.tolist() == [1.0, 2.0]


def test_five_runs_hold_no_more_tensors_than_one() -> None:
    work = ZOO["transformer"]()

    def live() -> int:
        gc.collect()
        tensors = [one for one in gc.get_objects() if type(one) in {torch.Tensor, nn.Parameter}]
        return sum(one.nbytes for one in tensors)

    _run(work, steps=2)
    before = live()
    for _ in range(5):
        _run(work, steps=2)
    assert live() == before


def test_keep_training_keeps_what_was_learned_and_nothing_else() -> None:
    work = ZOO["cnn"]()
    weights = [p.detach().clone() for p in work.model.parameters()]
    addresses = [p.data_ptr() for p in work.model.parameters()]
    loader_before, process_before = state_bytes(work.data), process_bytes()
    with prepare(work, Settings(channels_last=True), keep_training=True) as training:
        for _ in range(3):
            training.step(next(training.batches()))
        learned = [p.detach().clone() for p in work.model.parameters()]
    now = list(work.model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(learned, now, strict=True))
    pairs = zip(weights, now, strict=True)
    assert not any(torch.equal(a, b) for a, b in pairs if a.dim() > 1)
    assert [p.data_ptr() for p in now] == addresses
    assert work.schedulers[0].last_epoch == 4
    assert state_bytes(work.data) == loader_before
    assert process_bytes() == process_before


# Cut off in the middle of receiving a batch, torch leaves a socket to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_an_interrupt_at_any_moment_leaves_every_byte_as_it_was(workers: int) -> None:
    """Ten moments spread over starting, loading, training and putting back; then a run succeeds."""
    work = ZOO["cnn"]()
    settings = Settings(workers=workers)

    def run() -> None:
        with prepare(work, settings) as training:
            for _ in range(10):
                training.step(next(training.batches()))

    began = time.perf_counter()
    run()
    whole = time.perf_counter() - began
    before = state_bytes(*everything(work)), process_bytes()
    for part in range(10):
        _interrupted(run, whole * (part + 0.5) / 10)
        after = state_bytes(*everything(work)), process_bytes()
        for old, new in zip(before, after, strict=True):
            assert old == new, f"interrupted at {part}/10:\n{difference(old, new)}"
    run()
    gc.collect()


def _interrupted(run: Callable[[], None], seconds: float) -> None:
    """Run until a keyboard interrupt arrives, or to the end."""
    main = threading.main_thread().ident
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(main or 0, signal.SIGINT))
    try:
        try:
            timer.start()
            run()
        finally:
            timer.cancel()
            timer.join()
            time.sleep(0.001)  # an interrupt sent just now is taken here
    except KeyboardInterrupt:
        timer.join()
