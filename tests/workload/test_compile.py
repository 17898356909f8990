"""Does compilation act for the run only?"""

import gc
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.workload.state_bytes import difference, process_bytes, state_bytes
from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Workload, prepare


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
