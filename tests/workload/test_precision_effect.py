"""What the precision switches really do to a step on this processor, by its own clock."""

import statistics
import time
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import workbench as wb
from tests.findings.loops import of
from workbench.machine import native_dtypes, probe
from workbench.settings import Settings
from workbench.workload import Workload, prepare


def wide(width: int, rows: int) -> Workload:
    """Two layers whose products are nearly all of a step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    data = TensorDataset(torch.randn(rows, width), torch.randn(rows, width))
    return Workload(
        model,
        DataLoader(data, rows),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-3),
    )


def step_s(work: Workload, precision: Any, steps: int = 5) -> float:
    """Median processor time of a step, on one thread."""
    spent = []
    with prepare(work, Settings(precision=precision, threads=1)) as training:
        for _ in range(steps + 1):
            batch = next(training.batches())
            began = time.process_time()
            training.step(batch)
            spent.append(time.process_time() - began)
    return statistics.median(spent[1:])


def ratio(dtype: str) -> float | None:
    return next(each.matmul_ratio for each in probe("cpu") if each.dtype == dtype)


def test_bf16_is_faster_where_the_probe_says_that_it_is() -> None:
    measured = ratio("bf16")
    if not native_dtypes()["bf16"] or measured is None or measured > 0.6:
        with prepare(wide(32, 32), Settings(precision="bf16")) as training:
            told = any("not native" in note for note in training.notes)
            assert told or native_dtypes()["bf16"]
        return
    work = wide(1024, 256)
    plain, low = [], []
    for _ in range(2):
        plain.append(step_s(work, "fp32"))
        low.append(step_s(work, "bf16"))
    assert min(low) < 0.9 * min(plain)


def test_imitated_fp16_is_as_slow_as_the_probe_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal is taken out, to see what it spares: several times fp32's time, as measured."""
    if native_dtypes()["fp16"]:
        with prepare(wide(32, 32), Settings(precision="fp16")) as training:
            assert training.effective["precision"] == "fp16"
        return
    monkeypatch.setattr("workbench.workload.precision.native", lambda dtype, device: True)
    work = wide(256, 64)
    assert step_s(work, "fp16", 3) > 2 * step_s(work, "fp32", 3)


def test_a_run_in_imitated_fp16_says_so_and_keeps_its_scale(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.workload.precision.native", lambda dtype, device: True)
    run = wb.profile(
        wide(128, 32), wb.Settings(precision="fp16"), steps=3, folder=tmp_path, progress=False
    )
    assert run.record is not None
    scale = run.record.loss_scale
    assert scale is not None
    assert scale["steps"] >= 6
    assert scale["scales"][0][1] <= 65536.0
    assert wb.open(run.folder).record == run.record
    if native_dtypes()["fp16"] is False:
        finding = of(run, "WB302")
        assert finding is not None
        assert finding.evidence["dtype"] == "fp16"
        assert finding.evidence["matmul_ratio"] > 1.1
        assert finding.setting == {"precision": "bf16" if native_dtypes()["bf16"] else "fp32"}
