"""Does compilation act for the run only?"""

import gc
import weakref
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.workload.six import BLOCKS, SIX
from tests.workload.state_bytes import difference, process_bytes, state_bytes
from tests.workload.zoo import everything
from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Workload, prepare
from workbench.workload.compilation import compile_options


def _work(model: nn.Module) -> Workload:
    data = [(torch.ones(4, 3), torch.zeros(4, dtype=torch.long))]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Workload(model, data, loss=functional.cross_entropy, optimizer=optimizer)


@pytest.mark.slow
def test_a_compiled_run_gives_the_same_loss_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty cache, so that the compiler really starts its threads."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    work = _work(model)
    losses = {}
    for compiled in (False, True):
        before = state_bytes(model, work.optimizer), process_bytes()
        with prepare(work, Settings(compile=compiled)) as training:
            for _ in range(3):
                losses[compiled] = training.step(next(training.batches()))
            assert training.effective["compile"] is compiled
        after = state_bytes(model, work.optimizer), process_bytes()
        for old, new in zip(before, after, strict=True):
            assert old == new, difference(old, new)
    torch.testing.assert_close(losses[True], losses[False])
    alive = weakref.ref(model)
    del work, model, training
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_a_compiled_model_is_not_compiled_again_but_can_run_as_plain_code() -> None:
    model = torch.compile(nn.Linear(3, 2), backend=_never)
    work = _work(model)
    with pytest.raises(SettingError, match=r"is compiled already.*compile=False"):
        prepare(work, Settings(compile=True)).__enter__()
    with prepare(work, Settings(compile=False)) as training:
        training.step(next(training.batches()))
    with prepare(work) as training, pytest.raises(Exception, match="asked to compile"):
        training.step(next(training.batches()))


def _never(*_: object) -> None:
    raise RuntimeError("asked to compile")


@pytest.mark.filterwarnings("ignore:.torch.jit.* is deprecated")
def test_a_model_that_torch_cannot_compile_is_refused() -> None:
    work = _work(torch.jit.script(nn.Linear(3, 2)))
    with pytest.raises(SettingError, match=r"compile=True cannot act on this model: .*jit"):
        prepare(work, Settings(compile=True)).__enter__()


def test_without_a_compiler_the_error_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(SettingError, match=r"needs a C\+\+ compiler"):
        prepare(_work(nn.Linear(3, 2)), Settings(compile=True)).__enter__()


COMPILED: tuple[tuple[str, dict[str, Any]], ...] = (
    *((name, {"compile": True}) for name in SIX),
    ("cnn", {"compile": "default", "checkpointing": (BLOCKS["cnn"],)}),
    ("transformer", {"compile": True, "precision": "bf16_pure", "compile_fullgraph": True}),
    ("mlp", {"compile": "reduce-overhead", "compile_dynamic": True, "optimizer": "fused"}),
    ("tiny_ops", {"compile": "max-autotune", "accumulation": 2, "clip_norm": 0.1}),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), COMPILED, ids=str)
def test_runs_whose_graphs_are_taken_put_everything_back(
    name: str, values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of compilation but the making of code, which takes seconds each: see below."""
    # Plain code cannot go back over a block whose buffers have moved on.
    eager = {"backend": "aot_eager" if "checkpointing" in values else "eager"}
    kept = ("dynamic", "fullgraph", "isolate_recompiles")  # a mode belongs to the other back end

    def options(settings: Settings) -> dict[str, Any]:
        return {n: v for n, v in compile_options(settings).items() if n in kept} | eager

    monkeypatch.setattr("workbench.workload.compilation.compile_options", options)
    _check_all_is_put_back(SIX[name](tmp_path), Settings(**values))


def _marked(number: int, case: tuple[str, dict[str, Any]]) -> Any:
    """Few are compiled to the end in every test run."""
    return pytest.param(*case, marks=[] if number in {6, 7} else pytest.mark.soak)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"), [_marked(n, case) for n, case in enumerate(COMPILED)], ids=str
)
def test_compiled_runs_put_everything_back(
    name: str, values: dict[str, Any], tmp_path: Path
) -> None:
    """As in test_switches; compiling takes seconds each."""
    _check_all_is_put_back(SIX[name](tmp_path), Settings(**values))


def _check_all_is_put_back(work: Workload, settings: Settings) -> None:
    before = state_bytes(*everything(work)), process_bytes()
    for error in (None, KeyboardInterrupt):
        broken_off = nullcontext() if error is None else pytest.raises(error)
        with broken_off, prepare(work, settings) as training:
            loss = training.step(next(training.batches()))
            assert loss is not None
            assert torch.isfinite(loss)
            if error is not None:
                raise error
        after = state_bytes(*everything(work)), process_bytes()
        for old, new in zip(before, after, strict=True):
            assert old == new, difference(old, new)


@pytest.mark.slow
def test_checkpointed_blocks_of_a_compiled_model_count_a_batch_once(tmp_path: Path) -> None:
    """The compiler plans by itself what is computed again: batch norm still moves once a step."""
    work = SIX["cnn"](tmp_path)
    work.model.eval()  # of dropout only; batch norm is asked about
    work.model[1].norm.train()
    after = []
    for values in ({}, {"checkpointing": ("Block",)}):
        with prepare(work, Settings(compile=True, **values)) as training:
            training.step(next(training.batches()))
            norm = work.model[1].norm
            after.append((norm.num_batches_tracked.item(), norm.running_mean.clone()))
    assert after[0][0] == after[1][0]
    torch.testing.assert_close(after[0][1], after[1][1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # of torch's own look at the outputs
def test_a_break_of_the_graph_is_listed_and_under_fullgraph_refused() -> None:
    """A break in the middle of a model makes two graphs of it."""

    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(3, 2)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            outputs = self.out(inputs)
            torch._dynamo.graph_break()
            return outputs * 2

    work = _work(Looks())
    with prepare(work, Settings(compile=True)) as training:
        assert not any("broke the graph" in note for note in training.notes)
        training.step(next(training.batches()))
        (note,) = [note for note in training.notes if "broke the graph" in note]
        assert "ran as plain code" in note
    with (
        prepare(work, Settings(compile=True, compile_fullgraph=True)) as training,
        pytest.raises(SettingError, match=r"not give one graph \(Call to .torch._dynamo.graph_br"),
    ):
        training.step(next(training.batches()))


@pytest.mark.slow
def test_trials_that_take_turns_compile_once_and_leave_room_for_others(tmp_path: Path) -> None:
    """Ten kinds of numbers are more than torch's limit of eight variants of one function."""
    from torch._dynamo.utils import counters

    work = SIX["tiny_ops"](tmp_path)
    graphs = []
    for _ in range(2):
        for size in range(1, 6):
            for precision in ("bf16", "fp32"):
                values: dict[str, Any] = {"precision": precision, "batch_size": size}
                with prepare(work, Settings(compile=True, compile_dynamic=False, **values)) as run:
                    run.step(next(run.batches()))
                    assert not any("gave up" in note for note in run.notes)
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs[0] == graphs[1]


@pytest.mark.slow
def test_checkpointed_trials_that_take_turns_compile_once(tmp_path: Path) -> None:
    """The compiler takes another function object for another model."""
    from torch._dynamo.utils import counters

    work = SIX["tiny_ops"](tmp_path)
    graphs = []
    for _ in range(2):
        with prepare(work, Settings(compile=True, checkpointing=("Chain",))) as run:
            run.step(next(run.batches()))
        with prepare(work, Settings(checkpointing=("Chain",))) as run:
            run.step(next(run.batches()))
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({"compile": True}, {}),
        ({"compile": "default"}, {}),
        ({"compile": "reduce-overhead"}, {"mode": "reduce-overhead"}),
        ({"compile": True, "cuda_graphs": True}, {"mode": "reduce-overhead"}),
        (
            {"compile": "max-autotune", "cuda_graphs": False},
            {"mode": "max-autotune-no-cudagraphs"},
        ),
        (
            {"compile": True, "compile_dynamic": False, "compile_fullgraph": True},
            {"dynamic": False, "fullgraph": True},
        ),
    ],
    ids=str,
)
def test_settings_become_the_options_of_torch(
    values: dict[str, Any], options: dict[str, Any]
) -> None:
    given = compile_options(Settings(**values))
    assert given.pop("isolate_recompiles", True) is True
    assert given == options
