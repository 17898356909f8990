"""Does a switch do what it says, and nothing else to the numbers?"""

import copy
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from tests.workload.six import BLOCKS, SIX
from tests.workload.state_bytes import process_bytes, state_bytes
from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Workload, prepare


def _weights(work: Workload, settings: Settings, steps: int = 3) -> list[Tensor]:
    """The weights and buffers after some steps from one seed, on a copy."""
    torch.manual_seed(3)
    with prepare(work, settings) as training:
        for _ in range(steps):
            training.step(next(training.batches()))
        return [t.detach().clone() for t in (*work.model.parameters(), *work.model.buffers())]


def _same(first: list[Tensor], second: list[Tensor], **tolerance: float) -> None:
    for one, two in zip(first, second, strict=True):
        torch.testing.assert_close(one, two, **tolerance)


@pytest.mark.parametrize("name", SIX)
def test_checkpointing_changes_no_number(name: str, tmp_path: Path) -> None:
    """Dropout draws the same masks, and batch norm counts a batch once: bit for bit the same."""
    work = SIX[name](tmp_path)
    plain = _weights(work, Settings())
    _same(plain, _weights(work, Settings(checkpointing=(BLOCKS[name],))), rtol=0, atol=0)


def test_a_checkpointed_block_that_moves_its_buffers_takes_the_same_step_twice() -> None:
    """Spectral norm divides by an estimate that each pass improves: the second must not go on."""
    torch.manual_seed(0)
    norm = nn.utils.parametrizations.spectral_norm
    model = nn.Sequential(nn.Linear(3, 8), norm(nn.Linear(8, 2), n_power_iterations=1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = [(torch.randn(4, 3), torch.tensor([0, 1, 0, 1]))]
    work = Workload(model, rows, loss=functional.cross_entropy, optimizer=optimizer)
    plain = _weights(work, Settings())
    _same(plain, _weights(work, Settings(checkpointing=("1",))), rtol=0, atol=0)


def test_checkpointing_really_computes_the_block_again(tmp_path: Path) -> None:
    """The inner convolution runs twice a step with it, once without."""
    work = SIX["cnn"](tmp_path)
    calls: list[int] = []
    work.model[1].convolution.register_forward_hook(lambda *_: calls.append(1))
    for names, expected in ((None, 1), (("1",), 2), (("Block",), 2), (("Sequential",), 2)):
        with prepare(work, Settings(checkpointing=names)) as training:
            training.step(next(training.batches()))
            assert len(calls) == expected, names
    assert not calls  # it was put back


def test_a_name_that_fits_nothing_lists_the_modules(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"no module is called 'Blok'; .*Block × 2.*1\.norm"):
        prepare(SIX["cnn"](tmp_path), Settings(checkpointing=("Blok",))).__enter__()


@pytest.mark.parametrize("loop", ["foreach", "fused", "single"])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_the_loop_of_an_optimizer_changes_no_mathematics(kind: str, loop: Any) -> None:
    """Sums of the same numbers in another order: equal to a few roundings of fp32."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1)
    rows = [(torch.randn(4, 3), torch.tensor([0, 1, 0, 1]))]
    work = Workload(model, rows, loss=functional.cross_entropy, optimizer=optimizer)
    _same(_weights(work, Settings()), _weights(work, Settings(optimizer=loop)))
    with prepare(work, Settings(optimizer=loop)) as training:
        assert training.effective["optimizer"] == loop


def test_a_fused_optimizer_can_be_made_single_and_is_fused_again_after_it() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    work = Workload(
        model,
        [(torch.ones(4, 3), torch.tensor([0, 1, 0, 1]))],
        loss=functional.cross_entropy,
        optimizer=optimizer,
    )
    with prepare(work, Settings(optimizer="single"), keep_training=True) as training:
        training.step(next(training.batches()))
        assert not hasattr(optimizer, "_step_supports_amp_scaling")
    assert optimizer.param_groups[0]["fused"] is True
    assert optimizer.param_groups[0]["foreach"] is None
    assert optimizer._step_supports_amp_scaling


class Own(torch.optim.SGD):
    """A step of somebody's own."""

    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


@pytest.mark.parametrize(
    ("make", "loop", "match"),
    [
        (torch.optim.LBFGS, "foreach", "LBFGS: its step is its own, and has no foreach"),
        (Own, "fused", "Own: its step is its own"),
        (torch.optim.RMSprop, "fused", "torch has no fused form of it"),
        (lambda p: torch.optim.Adam(p, lr=torch.tensor(0.1)), "foreach", "rate is a tensor"),
    ],
)
def test_an_optimizer_without_that_loop_is_refused(
    make: Callable[[Any], Any], loop: Any, match: str
) -> None:
    model = nn.Linear(3, 2)
    work = Workload(model, [], loss=functional.cross_entropy, optimizer=make(model.parameters()))
    with pytest.raises(SettingError, match=match):
        prepare(work, Settings(optimizer=loop)).__enter__()


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_gradients_are_clipped_once_a_step_after_all_micro_batches(parts: int) -> None:
    """Descent at rate 1 with gradient (3, 4), of norm 5: clipped to 0.5, weights move by it."""
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    batch = torch.tensor([[3.0, 4.0]]).expand(8, 2)
    work = Workload(
        model,
        [(batch, torch.zeros(8))],
        loss=lambda output, _: output.mean(),
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
    )
    with prepare(work, Settings(clip_norm=0.5, accumulation=parts)) as training:
        training.step(next(training.batches()))
        torch.testing.assert_close(model.weight.detach(), torch.tensor([[-0.3, -0.4]]))


@pytest.mark.parametrize("wanted", [True, False])
def test_gradients_are_dropped_or_filled_with_zeros(wanted: bool) -> None:
    model = nn.Linear(3, 2)
    seen: list[Tensor | None] = []
    model.register_forward_pre_hook(lambda *_: seen.append(model.weight.grad))
    work = Workload(
        model,
        [(torch.ones(4, 3), torch.tensor([0, 1, 0, 1]))],
        loss=functional.cross_entropy,
        optimizer=torch.optim.SGD(model.parameters()),
    )
    with prepare(work, Settings(set_to_none=wanted)) as training:
        for _ in range(2):
            training.step(next(training.batches()))
        assert seen[0] is None
        assert (seen[1] is None) == wanted


def test_pure_bf16_holds_everything_in_bf16_and_gives_the_exact_weights_back(
    tmp_path: Path,
) -> None:
    work = SIX["transformer"](tmp_path)
    before = [p.detach().clone() for p in work.model.parameters()]
    with prepare(work, Settings(precision="bf16_pure")) as training:
        training.step(next(training.batches()))
        (optimizer,) = work.optimizers
        assert {p.dtype for p in work.model.parameters()} == {torch.bfloat16}
        assert {s["exp_avg"].dtype for s in optimizer.state.values()} == {torch.bfloat16}
        assert work.model.head.weight is work.model.embedding.weight
        assert training.effective["precision"] == "bf16_pure"
    _same(before, list(work.model.parameters()), rtol=0, atol=0)


def test_pure_bf16_keeps_the_tie_of_weights_that_only_share_memory() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight.data = model[0].weight.data
    optimizer = torch.optim.SGD(model[0].parameters(), lr=1.0)
    rows = [(torch.ones(2, 4), torch.tensor([0, 1]))]
    work = Workload(model, rows, loss=functional.cross_entropy, optimizer=optimizer)
    with prepare(work, Settings(precision="bf16_pure")) as training:
        training.step(next(training.batches()))
        assert model[0].weight.data_ptr() == model[1].weight.data_ptr()


def test_training_under_pure_bf16_can_be_kept_in_fp32(tmp_path: Path) -> None:
    work = SIX["rnn"](tmp_path)
    with prepare(work, Settings(precision="bf16_pure"), keep_training=True) as training:
        training.step(next(training.batches()))
    with prepare(work) as training:  # and goes on from there
        training.step(next(training.batches()))
    kept = [value for state in work.optimizers[0].state.values() for value in state.values()]
    parts = (*work.model.parameters(), *(p.grad for p in work.model.parameters()), *kept)
    assert {part.dtype for part in parts if part is not None} == {torch.float32}


def test_a_processor_that_is_not_there_is_refused() -> None:
    before = process_bytes()
    with pytest.raises(SettingError, match=r"cpu_affinity=\(99999,\) cannot act.*may run on"):
        prepare(Workload(nn.Identity(), [1]), Settings(cpu_affinity=(99999,))).__enter__()
    assert process_bytes() == before


@pytest.mark.slow
def test_threads_between_operators_stay_in_a_fresh_process_and_that_is_said() -> None:
    program = """if True:
        import torch
        from workbench.settings import Settings
        from workbench.workload import Workload, prepare
        wanted = torch.get_num_interop_threads() + 1
        work = Workload(torch.nn.Identity(), [torch.ones(1)])
        with prepare(work, Settings(interop_threads=wanted)) as training:
            training.step(next(training.batches()))
            assert training.effective["interop_threads"] == wanted
            assert any("stays in this process" in note for note in training.notes)
        assert torch.get_num_interop_threads() == wanted
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


class Casts(TorchDispatchMode):
    """Counts casts of square matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten._to_copy.default and args[0].shape == (3, 3):
            self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("cache", "expected"), [(None, 1), (True, 1), (False, 2)])
def test_a_weight_that_is_used_twice_is_cast_once_with_the_cache(
    cache: bool | None, expected: int
) -> None:
    layer = nn.Linear(3, 3)
    work = Workload(
        nn.Sequential(layer, layer),
        [(torch.ones(4, 3), torch.tensor([0, 1, 0, 1]))],
        loss=functional.cross_entropy,
    )
    settings = Settings(precision="bf16", autocast_cache=cache)
    with prepare(work, settings) as training, Casts() as casts:
        training.step(next(training.batches()))
    # Of backward: the gradient of each cast comes back as fp32.
    assert casts.count - expected == expected


def test_threads_between_operators_are_refused_where_torch_has_fixed_them() -> None:
    now = torch.get_num_interop_threads()
    with suppress(RuntimeError):  # it is fixed already
        torch.set_num_interop_threads(now)
    work = Workload(nn.Identity(), [torch.ones(1)])
    with pytest.raises(SettingError, match="torch fixes this number once in a process"):
        prepare(work, Settings(interop_threads=now + 1)).__enter__()
    with prepare(work, Settings(interop_threads=now)) as training:
        assert training.effective["interop_threads"] == now


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"cudnn_benchmark": True}, "cuDNN computes on NVIDIA devices only"),
        ({"cuda_graphs": True}, "records the work of a CUDA device"),
        ({"attention": "efficient"}, "torch has flash and math there"),
        ({"attention": "cudnn"}, "torch has flash and math there"),
        ({"precision": "fp8"}, "compute capability 8.9"),
        ({"device": "cuda:0"}, "is not available here"),
        ({"device": "mps"}, "is not available here"),
        ({"workers": 1_000_000}, "each is a process of its own, and more than"),
        ({"in_order": False}, "no worker processes"),
        ({"worker_threads": 2}, "no worker processes"),
        ({"multiprocessing_context": "spawn"}, "no worker processes"),
    ],
)
def test_what_this_machine_or_loader_lacks_is_refused(
    values: dict[str, Any], match: str, tmp_path: Path
) -> None:
    if torch.cuda.is_available() and any("cuda" in str(v) for v in (*values, *values.values())):
        pytest.skip("about machines without such a device")
    work = SIX["cnn"](tmp_path)
    before = state_bytes(work.model, work.data), process_bytes()
    with pytest.raises(SettingError, match=match):
        prepare(work, Settings(**values)).__enter__()
    assert (state_bytes(work.model, work.data), process_bytes()) == before


def test_another_batch_size_names_the_rule_and_leaves_the_rate(tmp_path: Path) -> None:
    work = SIX["transformer"](tmp_path)
    with prepare(work, Settings(batch_size=8)) as training:
        (note,) = [note for note in training.notes if "learning rate" in note]
        assert "8 is 2 times the loop's 4" in note
        assert "AdamW: × 1.41" in note  # the square root of 2
        assert work.optimizers[0].param_groups[0]["lr"] == 1e-3


KEPT = (
    *({"optimizer": "fused"}, {"checkpointing": ("Block",)}, {"attention": "math"}),
    *({"precision": "bf16_pure"}, {"matmul_precision": "medium"}, {"threads": 2}),
    *({"batched_fetch": True}, {"cpu_affinity": (0,)}, {"channels_last": True}),
)


@pytest.mark.parametrize("values", KEPT, ids=str)
def test_a_run_whose_training_is_kept_changes_nothing_but_numbers(
    values: dict[str, Any], tmp_path: Path
) -> None:
    """Attributes, flags and the loader are as before; weights keep their place and layout."""
    work = SIX["cnn"](tmp_path)
    frame = _frame(work)
    with prepare(work, Settings(**values), keep_training=True) as training:
        first = [p.detach().float().clone() for p in work.model.parameters()]
        training.step(next(training.batches()))
    assert _frame(work) == frame
    assert any(not torch.equal(a, b) for a, b in zip(first, work.model.parameters(), strict=True))


def _frame(work: Workload) -> tuple[Any, ...]:
    groups = copy.deepcopy([dict(g, params=0) for o in work.optimizers for g in o.param_groups])
    tensors = [
        (t.data_ptr(), t.stride(), t.dtype)
        for t in (*work.model.parameters(), *work.model.buffers())
    ]
    modules = [sorted(vars(module)) for module in work.model.modules()]
    # A scheduler marks its optimizer at the first step after it.
    attributes = sorted(vars(work.optimizers[0]).keys() - {"_opt_called"})
    return groups, tensors, modules, attributes, state_bytes(work.data), process_bytes()
