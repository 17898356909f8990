"""M06: running the same cell again; the workbench holds no model, batch or result of its own."""

import gc
import weakref
from queue import SimpleQueue
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from tests.profiling.loops import loader


def live_bytes() -> int:
    gc.collect()
    tensors = [thing for thing in gc.get_objects() if type(thing) in (torch.Tensor, nn.Parameter)]
    return sum(t.numel() * t.element_size() for t in tensors)


def once() -> None:
    model = nn.Sequential(nn.Linear(4, 250_000), nn.Linear(250_000, 2))
    wb.profile(wb.Workload(model, loader(4)), steps=2)


def test_five_runs_hold_no_more_than_one(place: Any) -> None:
    """The model has 7 MB; a run that kept it would show after five of them."""
    once()
    after_one = live_bytes()
    for _ in range(4):
        once()
    assert live_bytes() <= after_one * 1.05 + 1000


def test_a_failed_run_holds_neither_model_nor_batch(place: Any) -> None:
    held = SimpleQueue[weakref.ref[Any]]()  # a list would be put back with the rest of the state

    def step(model: nn.Module, batch: Any) -> None:
        held.put(weakref.ref(batch[0]))
        raise ValueError("no")

    model = nn.Linear(4, 2)
    held.put(weakref.ref(model))
    with pytest.raises(ValueError, match="no"):
        wb.profile(wb.Workload(model, loader(4), step=step), steps=2)
    del model
    gc.collect()
    assert [held.get(timeout=1)() for _ in range(2)] == [None, None]
