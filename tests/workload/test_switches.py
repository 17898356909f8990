"""Does every switch put back all that it changes, on six kinds of training loop?

A loss that breaks off stands for whatever goes wrong in the middle of a run.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.workload.six import BLOCKS, SIX
from tests.workload.state_bytes import difference, process_bytes, state_bytes
from tests.workload.zoo import everything
from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload import Workload, precision, prepare

pytestmark = pytest.mark.slow


PICTURES = {"cnn", "image_folder"}
TENSORS = {"cnn", "transformer", "rnn", "tiny_ops"}
ALL = set(SIX)

# What is set, and the loops on which it can act; on the others it is refused.
SWITCHES: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({"precision": "fp32"}, ALL),
    ({"precision": "bf16"}, ALL),
    ({"precision": "bf16_pure"}, ALL),
    ({"matmul_precision": "medium"}, ALL),
    ({"matmul_precision": "high"}, ALL),
    ({"precision": "bf16", "autocast_cache": False}, ALL),
    ({"autocast_cache": False}, ALL),
    ({"compile": False}, ALL),
    ({"channels_last": True}, PICTURES),
    ({"channels_last": False}, PICTURES),
    ({"attention": "math"}, ALL),
    ({"attention": "flash"}, ALL),
    ({"accumulation": 2}, ALL),
    ({"clip_norm": 0.1}, ALL),
    ({"accumulation": 3, "clip_norm": 0.1}, ALL),
    ({"optimizer": "foreach"}, ALL),
    ({"optimizer": "fused"}, ALL),
    ({"optimizer": "single"}, ALL),
    ({"set_to_none": False}, ALL),
    ({"batch_size": 3}, ALL),
    ({"drop_last": True}, ALL),
    ({"batched_fetch": True}, TENSORS | {"mlp"}),
    ({"batched_fetch": False}, ALL),
    ({"threads": 2}, ALL),
    ({"cpu_affinity": (0,)}, ALL),
    ({"device": "cpu"}, ALL),
    ({"workers": 1, "prefetch_factor": 1, "in_order": False, "worker_threads": 2}, ALL),
    ({"workers": 1, "persistent_workers": True, "multiprocessing_context": "fork"}, ALL),
    ({"workers": 2, "batched_fetch": True, "precision": "bf16_pure"}, TENSORS | {"mlp"}),
    ({"precision": "bf16_pure", "channels_last": True, "accumulation": 2}, PICTURES),
    ({"precision": "bf16", "optimizer": "fused", "clip_norm": 1.0, "threads": 2}, ALL),
)
CHECKPOINTED = ({}, {"precision": "bf16"}, {"accumulation": 2, "clip_norm": 0.1})
CASES = [(name, values) for values, can in SWITCHES for name in SIX if name in can]
CASES += [(name, {**v, "checkpointing": (BLOCKS[name],)}) for v in CHECKPOINTED for name in SIX]
REFUSED = [(name, values) for values, can in SWITCHES for name in SIX if name not in can]


class BreaksOff:
    """A loss that raises at its second call."""

    def __init__(self, loss: Callable[..., Tensor], error: BaseException | None) -> None:
        self.loss = loss
        self.error = error
        self.calls = 0

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        self.calls += 1
        if self.error is not None and self.calls == 2:
            raise self.error
        return self.loss(output, target)


def made(name: str, folder: Path, error: BaseException | None = None) -> Workload:
    work = SIX[name](folder)
    assert work.loss is not None
    return replace(work, loss=BreaksOff(work.loss, error))


def _bytes(work: Workload) -> tuple[bytes, bytes]:
    return state_bytes(*everything(work)), process_bytes()


def _ids(value: object) -> str:
    return str(Settings(**value)) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("name", "values"), CASES, ids=_ids)
def test_all_state_is_put_back_byte_for_byte(
    name: str, values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After a run, and after one that an error, an interrupt or a lack of memory broke off."""
    folder = tmp_path_factory.getbasetemp() / "pictures"
    folder.mkdir(exist_ok=True)
    errors = (None, ZeroDivisionError(), KeyboardInterrupt(), torch.OutOfMemoryError())
    for error in errors if values.get("workers", 0) < 2 else errors[:1]:
        work = made(name, folder, error)
        before = _bytes(work)
        broken_off = nullcontext() if error is None else pytest.raises(type(error))
        with broken_off, prepare(work, Settings(**values)) as training:
            for _ in range(2):
                loss = training.step(next(training.batches()))
                assert loss is not None
                assert torch.isfinite(loss)
        after = _bytes(work)
        for old, new in zip(before, after, strict=True):
            assert old == new, difference(old, new)


@pytest.mark.parametrize("name", sorted(ALL - {"rnn"}))
def test_fp16_puts_everything_back_also_after_steps_that_it_skipped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let it run, however slowly this processor imitates it: the loops are tiny."""
    monkeypatch.setattr(precision, "native", lambda *_: True)
    for scale in (1024.0, 2.0**120):
        work = made(name, tmp_path)
        before = _bytes(work)
        settings = Settings(precision="fp16", loss_scale=scale, clip_norm=1.0, accumulation=2)
        with prepare(work, settings) as training:
            for _ in range(2):
                training.step(next(training.batches()))
            assert training.skipped_steps == (0 if scale == 1024.0 else 2)
        after = _bytes(work)
        for old, new in zip(before, after, strict=True):
            assert old == new, difference(old, new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("cnn", "spawn"),
        ("mlp", "forkserver"),
        pytest.param("mlp", "spawn", marks=pytest.mark.soak),
        pytest.param("cnn", "forkserver", marks=pytest.mark.soak),
        pytest.param("image_folder", "spawn", marks=pytest.mark.soak),
        pytest.param("image_folder", "forkserver", marks=pytest.mark.soak),
    ],
)
def test_workers_that_start_fresh_leave_nothing(name: str, start: Any, tmp_path: Path) -> None:
    """But tensors of a data set: torch moves them to shared memory, in the same objects."""
    work = SIX[name](tmp_path)
    if name == "cnn":
        for tensor in work.data.dataset.tensors:
            tensor.share_memory_()
    before = _bytes(work)
    settings = Settings(workers=1, multiprocessing_context=start, worker_threads=2)
    with prepare(work, settings) as training:
        training.step(next(training.batches()))
        assert training.effective["multiprocessing_context"] == start
        assert any("move to shared memory" in note for note in training.notes)
    after = _bytes(work)
    for old, new in zip(before, after, strict=True):
        assert old == new, difference(old, new)


@pytest.mark.parametrize(("name", "values"), REFUSED, ids=_ids)
def test_what_cannot_act_is_refused_and_nothing_is_changed(
    name: str, values: dict[str, Any], tmp_path: Path
) -> None:
    work = made(name, tmp_path)
    before = _bytes(work)
    with pytest.raises(SettingError, match="cannot act"):
        prepare(work, Settings(**values)).__enter__()
    assert _bytes(work) == before
