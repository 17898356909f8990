"""Models, steps and optimizers that do not bear a setting: is it said, and is all put back?"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.workload.six import SIX
from tests.workload.state_bytes import difference, process_bytes, state_bytes
from tests.workload.zoo import everything
from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Control, Workload, precision, prepare
from workbench.workload.switches.graphs import Graphed

LABELS = torch.tensor([0, 1, 0, 1])


def _work(model: nn.Module, *inputs: int, **others: Any) -> Workload:
    shape = inputs or (3,)
    rows = [(torch.randn(4, *shape), LABELS)]
    if "step" not in others:
        others.setdefault("optimizer", torch.optim.SGD(model.parameters(), lr=0.1))
        others["loss"] = functional.cross_entropy
    return Workload(model, rows, **others)


def _one_step(work: Workload, settings: Settings) -> list[str]:
    """Run one step; the notes of the run. All state is compared."""
    before = state_bytes(*everything(work)), process_bytes()
    try:
        with prepare(work, settings) as training:
            training.step(next(training.batches()))
            return training.notes
    finally:
        after = state_bytes(*everything(work)), process_bytes()
        for old, new in zip(before, after, strict=True):
            assert old == new, difference(old, new)


class Viewer(nn.Module):
    """Views its activations as if they lay in the plain order."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 2, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.convolution(inputs).view(len(inputs), -1)


class Constant(nn.Module):
    """Mixes in numbers of its own, which are fp32."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(torch.ones(len(inputs), 3))


class Dropping(nn.Module):
    """Attention with dropout, which the flash kernel of a CPU does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        query = self.out(inputs)[:, None, None]
        mixed = functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5)
        return mixed[:, 0, 0]


@pytest.mark.parametrize(
    ("model", "shape", "settings", "match"),
    [
        (Viewer(), (3, 4, 4), Settings(channels_last=True), "does not suit this model: it views"),
        (Constant(), (3,), Settings(precision="bf16_pure"), "stays in another dtype.*'bf16'"),
        (Dropping(), (3,), Settings(attention="flash"), "does not take these inputs.*'math'"),
    ],
    ids=["channels_last", "bf16_pure", "attention"],
)
def test_a_model_that_does_not_bear_a_setting_says_so_at_its_first_step(
    model: nn.Module, shape: tuple[int, ...], settings: Settings, match: str
) -> None:
    work = _work(model, *shape)
    with pytest.raises(SettingError, match=match):
        _one_step(work, settings)
    _one_step(work, Settings())


def test_an_error_that_no_setting_caused_stays_what_it_is() -> None:
    work = _work(nn.Linear(5, 2))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        _one_step(work, Settings(channels_last=None, precision="fp32", attention="math"))


@pytest.fixture
def fp16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fp16 run, however slowly this processor imitates it: the models are tiny."""
    monkeypatch.setattr(precision, "native", lambda *_: True)


@pytest.mark.usefixtures("fp16")
def test_a_scale_that_overflows_skips_the_step_and_is_counted() -> None:
    """2¹²⁶ times a loss of about 0.7 has gradients beyond what fp16 holds (65504)."""
    work = _work(nn.Linear(3, 2))
    with prepare(work, Settings(precision="fp16", loss_scale=2.0**126)) as training:
        weight = work.model.weight.detach().clone()
        training.step(next(training.batches()))
        assert torch.equal(work.model.weight, weight)
        assert training.skipped_steps == 1
        assert "1 optimizer steps in 1 steps were skipped: fp16 gradients" in training.notes[-1]


@pytest.mark.usefixtures("fp16")
def test_a_schedule_waits_for_a_step_that_was_not_skipped() -> None:
    """Torch warns of a schedule that goes on before the first step of its optimizer."""
    work = _work(nn.Linear(3, 2))
    schedule = torch.optim.lr_scheduler.StepLR(work.optimizers[0], 1, gamma=0.5)
    work = replace(work, scheduler=schedule)
    for scale, rate in ((2.0**126, 0.1), (1.0, 0.05)):
        with prepare(work, Settings(precision="fp16", loss_scale=scale)) as training:
            training.step(next(training.batches()))
            assert schedule.get_last_lr() == [rate]


@pytest.mark.usefixtures("fp16")
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_clipping_sees_gradients_that_were_scaled_back(parts: int, scale: float) -> None:
    """Gradient (3, 4) of norm 5, clipped to 0.5: weights move by (0.3, 0.4) at rate 1."""
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    work = Workload(
        model,
        [(torch.tensor([[3.0, 4.0]]).expand(8, 2), torch.zeros(8))],
        loss=lambda output, _: output.float().mean(),
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
    )
    settings = Settings(precision="fp16", loss_scale=scale, clip_norm=0.5, accumulation=parts)
    with prepare(work, settings) as training:
        training.step(next(training.batches()))
        moved = model.weight.detach()
        # fp16 has 11 bits: each of two roundings is off by at most 1 in 2048.
        torch.testing.assert_close(moved, torch.tensor([[-0.3, -0.4]]), rtol=2e-3, atol=0)


@pytest.mark.usefixtures("fp16")
def test_a_step_that_never_uses_its_control_is_told_what_did_not_act() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model: nn.Module, batch: Any, control: Control) -> Tensor:
        inputs, labels = control.to_device(batch)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    work = _work(model, step=step)
    settings = Settings(precision="fp16", accumulation=2, clip_norm=1.0, set_to_none=True)
    with prepare(work, settings) as training:
        assert training.unused == ()  # nothing has run yet
        training.step(next(training.batches()))
        said = " ".join(training.unused)
    for call in ("backward", "forward", "micro_batches", "optimizer_step", "zero_grad"):
        assert f"control.{call}" in said
    assert "to_device" not in said
    assert set(training.unused) <= set(training.notes)


def test_a_step_that_uses_its_control_gets_every_setting() -> None:
    """The same training as the default step gives: the same weights, to the last bit."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model: nn.Module, batch: Any, control: Control) -> None:
        control.zero_grad(optimizer)
        parts = list(control.micro_batches(batch))
        for number, (part, share) in enumerate(parts, start=1):
            inputs, labels = control.to_device(part)
            with control.no_sync(model, last=number == len(parts)), control.forward():
                loss = functional.cross_entropy(model(inputs), labels) * share
            control.scale(loss).backward()
        control.unscale(optimizer)
        control.optimizer_step(optimizer)

    plain = _work(model, optimizer=optimizer)
    own = Workload(model, plain.data, step=step)
    settings = Settings(precision="bf16", accumulation=2, clip_norm=0.01, set_to_none=False)
    after = {}
    for work in (plain, own):
        with prepare(work, settings) as training:
            training.step(next(training.batches()))
            assert training.unused == ()
            after[work] = model.weight.detach().clone()
    assert torch.equal(after[plain], after[own])


@pytest.mark.parametrize(
    "values",
    [{"clip_norm": 1.0}, {"set_to_none": True}, {"accumulation": 2}, {"precision": "fp16"}],
    ids=str,
)
@pytest.mark.usefixtures("fp16")
def test_a_step_without_control_is_refused_what_lies_inside_it(values: dict[str, Any]) -> None:
    work = _work(nn.Linear(3, 2), step=lambda model, batch: None)
    with pytest.raises(SettingError, match="cannot act inside a step of your own"):
        _one_step(work, Settings(**values))


def test_casts_are_not_kept_over_a_whole_step_of_ones_own() -> None:
    work = _work(nn.Linear(3, 2), step=lambda model, batch: None)
    with pytest.raises(SettingError, match=r"kept beyond their update.*control\.forward"):
        _one_step(work, Settings(precision="bf16", autocast_cache=True))


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"clip_norm": 1.0}, "LBFGS evaluates the model itself.*compares losses"),
        ({"precision": "fp16"}, "LBFGS evaluates the model itself.*gradient scaling"),
    ],
)
@pytest.mark.usefixtures("fp16")
def test_a_line_search_is_refused_what_breaks_it(values: dict[str, Any], match: str) -> None:
    model = nn.Linear(3, 2)
    work = _work(model, optimizer=torch.optim.LBFGS(model.parameters(), max_iter=2))
    with pytest.raises(SettingError, match=match):
        _one_step(work, Settings(**values))


def test_a_line_search_goes_on_in_pure_bf16_with_the_memory_that_it_has() -> None:
    """LBFGS keeps lists of tensors: they are cast with the weights, and given back exactly."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    work = _work(model, optimizer=optimizer)
    with prepare(work, keep_training=True) as training:
        training.step(next(training.batches()))
    assert optimizer.state[model.weight]["old_dirs"]
    _one_step(work, Settings(precision="bf16_pure", accumulation=2))


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"compile": True}, "DataParallel runs new copies"),
        ({"checkpointing": ("Linear",)}, "DataParallel runs copies"),
        ({"precision": "bf16_pure"}, "DataParallel holds the weights as they were"),
    ],
)
def test_a_model_in_data_parallel_is_refused_what_its_copies_would_miss(
    values: dict[str, Any], match: str
) -> None:
    with pytest.raises(SettingError, match=match):
        _one_step(_work(nn.DataParallel(nn.Linear(3, 2))), Settings(**values))


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    """A process group of one rank."""
    from torch import distributed

    file = f"file://{tmp_path / 'store'}"
    distributed.init_process_group("gloo", init_method=file, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_a_model_whose_gradients_are_exchanged_takes_what_leaves_its_weights_in_place() -> None:
    body = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    work = _work(nn.parallel.DistributedDataParallel(body))
    for values in ({"checkpointing": ("0",)}, {"accumulation": 2}, {"precision": "bf16"}):
        with prepare(work, Settings(**values)) as training:
            training.step(next(training.batches()))
            assert body[0].weight.grad is not None
    with pytest.raises(SettingError, match="DistributedDataParallel holds the weights"):
        prepare(work, Settings(precision="bf16_pure")).__enter__()


def test_a_model_on_several_devices_is_not_moved() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2, device="meta"))
    work = _work(model, step=lambda model, batch: None)
    with pytest.raises(SettingError, match=r"lies on several devices \(cpu, meta\)"):
        prepare(work, Settings(device="cpu")).__enter__()


class Casting(nn.Module):
    """Enters autocast by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.out(inputs)


class Decorated(Casting):
    """The same by a decorator."""

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(inputs)


@pytest.mark.parametrize("make", [Casting, Decorated])
def test_autocast_inside_the_model_is_said_to_decide_there(make: Callable[[], nn.Module]) -> None:
    work = _work(make())
    notes = _one_step(work, Settings(precision="fp32"))
    assert any(f"{make.__name__}.forward enters autocast by itself" in note for note in notes)
    assert not any("enters autocast" in note for note in _one_step(work, Settings()))


def test_batches_without_tensors_run_under_settings_of_numbers() -> None:
    seen: list[Any] = []

    def step(model: nn.Module, batch: Any) -> None:
        seen.append(batch)

    work = Workload(nn.Linear(3, 2), [["a", {"b": object()}]], step=step)
    _one_step(work, Settings(precision="bf16_pure", threads=1, device="cpu"))
    work = Workload(nn.Linear(3, 2), [["a"]], step=_cuts)
    with pytest.raises(SettingError, match="no common first dimension"):
        _one_step(work, Settings(accumulation=2))


def _cuts(model: nn.Module, batch: Any, control: Control) -> None:
    list(control.micro_batches(batch))


class Graphs:
    """Stands for a CUDA device: captures by running the model, and counts."""

    def __init__(self) -> None:
        self.captured: list[torch.Size] = []
        self.replayed = 0

    def __call__(self, model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[..., Any]:
        model(*inputs)  # warms up, as torch does
        torch.rand(1)
        self.captured.append(inputs[0].shape)

        def replay(*inputs: Tensor) -> Any:
            self.replayed += 1
            return model(*inputs)

        return replay


def test_graphs_are_captured_once_and_replayed_for_that_shape_only() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    graphs = Graphs()
    twin = Graphed(model, graphs)
    state = torch.get_rng_state()
    twin(torch.ones(4, 3))
    assert torch.equal(torch.get_rng_state(), state)
    assert model[1].num_batches_tracked == 1  # of the replay: warming up counts no batch
    twin(torch.ones(4, 3))
    twin(torch.ones(2, 3))  # the last batch of an epoch
    assert (graphs.captured, graphs.replayed) == ([torch.Size([4, 3])], 2)
    assert twin.training
    with pytest.raises(SettingError, match="more than tensors by position"):
        twin(input=torch.ones(4, 3))


def test_every_loop_says_the_same_about_what_it_runs_with(tmp_path: Path) -> None:
    """What is in force can be read back, also where nothing was set."""
    with prepare(SIX["cnn"](tmp_path)) as training:
        effective = training.effective
    assert set(Settings.__dataclass_fields__) <= set(effective), "every switch can be read back"
    assert effective["drop_last"] is False
    assert effective["batched_fetch"] is False
    assert effective["matmul_precision"] == torch.get_float32_matmul_precision()
    assert effective["cpu_affinity"] == sorted(os.sched_getaffinity(0))
    assert (effective["clip_norm"], effective["checkpointing"]) == (None, None)
