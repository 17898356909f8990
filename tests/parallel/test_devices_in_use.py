"""L05: a device that an earlier cell has opened does not survive a fork, so no rank is forked."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import workbench as wb
from workbench.machine import preflight
from workbench.parallel.launch import launch
from workbench.session import Session


def opened(rank: Any, payload: dict[str, Any]) -> bool:
    """Whether this rank believes that a device is open, as a child of a fork would."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


@pytest.mark.slow
def test_ranks_of_a_process_that_has_opened_a_device_are_fresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fork would inherit what stands in for the open device; nothing needs to be refused."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert launch(opened, {}, world_size=2, time_limit_s=200) == (False, False)


def test_looking_at_machine_and_workload_opens_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touched(*_: object) -> None:
        raise AssertionError("looking must not open a device")

    monkeypatch.setattr(torch.cuda, "_lazy_init", touched)
    model = nn.Linear(4, 2)
    data = TensorDataset(torch.randn(8, 4), torch.randint(2, (8,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    work = wb.Workload(
        model, data, loss=functional.cross_entropy, optimizer=optimizer, batch_size=4
    )
    assert preflight().rows
    session = Session(work, folder=tmp_path)
    assert {offer.field for offer in session.offers()} >= {"precision", "parallel", "device"}
    assert not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
