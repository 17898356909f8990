"""Scenarios of low precision as torch itself runs them on a CPU: P03, P04 and P05 of the catalogue.

P01 is in test_imitated_precision and tests/machine/test_probes, P08 in test_useless_amp and
tests/run/test_differs, P09 in test_growing_casts.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import workbench as wb
from tests.findings.loops import of
from workbench.findings import diagnose
from workbench.run.facts import gather
from workbench.run.run import Run

CALLS = 10


def autocast() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16)


def captured(folder: Path, step: Callable[[], None], *, steps: int = 4) -> Run:
    """A capture of a loop of this step, with shapes."""
    with wb.capture(folder / "run", warmup=1, steps=steps) as cap:
        for _ in range(steps + 3):
            step()
            cap.step()
    return cap.run


@pytest.mark.parametrize("each_call", [True, False], ids=["around each call", "around the loop"])
def test_p04_autocast_around_every_call_casts_the_weight_every_time(
    tmp_path: Path, each_call: bool
) -> None:
    """One layer is applied ten times: one cast of its weight would do, and ten are made."""
    layer = nn.Linear(512, 512)
    x = torch.randn(1, 512)

    def step() -> None:
        y = x
        with nullcontext() if each_call else autocast():
            for _ in range(CALLS):
                with autocast():
                    y = layer(y)
        layer.zero_grad()
        y.float().sum().backward()

    run = captured(tmp_path, step)
    finding = of(run, "WB304")
    assert (finding is not None) == each_call
    if finding is not None:
        assert finding.evidence["casts_per_step"] >= CALLS
        assert "outermost region" in finding.advice
    # aten::linear calls itself below autocast, and is still one call each.
    operators = run.operators.set_index("name")
    assert operators.loc["aten::linear", "calls"] == CALLS * 4


@pytest.mark.parametrize(
    ("words", "dtype", "told"),
    [
        (50_257, torch.bfloat16, True),
        (50_304, torch.bfloat16, False),
        (50_257, torch.float32, False),
    ],
    ids=["GPT-2's vocabulary", "padded", "fp32"],
)
def test_p05_a_vocabulary_that_is_no_multiple_of_8(
    tmp_path: Path, words: int, dtype: torch.dtype, told: bool
) -> None:
    head = nn.Linear(16, words, bias=False).to(dtype)
    x = torch.randn(16, 16).to(dtype)

    def step() -> None:
        functional.linear(x, head.weight).sum().item()

    finding = of(captured(tmp_path, step), "WB303")
    assert (finding is not None) == told
    if finding is not None:
        assert "50257" in finding.title
        assert finding.verdict == "yes"
        assert "0 to 10 %" in finding.title


def test_p03_on_a_cpu_the_measured_ratio_decides(tmp_path: Path) -> None:
    """Large fp32 products, on a processor whose bf16 was measured at a quarter of the time."""
    a = torch.randn(512, 512)

    def step() -> None:
        (a @ a).sum().item()

    run = captured(tmp_path, step)
    bf16 = {"dtype": "bf16", "supported": True, "native": True, "matmul_ratio": 0.25}
    facts = gather(run.ranks[0], run.record)
    for probes, told in (((bf16,), True), (({**bf16, "native": False},), False), ((), False)):
        codes = {finding.code for finding in diagnose(replace(facts, dtypes=probes))}
        assert ("WB301" in codes) == told


def test_bf16_that_was_switched_on_is_recorded_with_its_ratio(tmp_path: Path) -> None:
    """The processor of this test is really asked; native or not, the Run remembers the answer."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    data = torch.utils.data.TensorDataset(torch.randn(64, 64), torch.randint(0, 4, (64,)))
    work = wb.Workload(
        model,
        torch.utils.data.DataLoader(data, 16),
        loss=functional.cross_entropy,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    )
    run = wb.profile(work, wb.Settings(precision="bf16"), steps=3, folder=tmp_path, progress=False)
    assert run.record is not None
    probes = {each["dtype"]: each for each in run.record.dtypes or ()}
    assert set(probes) == {"fp32", "tf32", "bf16", "fp16", "fp8"}
    ratio = probes["bf16"]["matmul_ratio"]
    assert ratio is None or ratio > 0
    finding = of(run, "WB302")
    slow = max(ratio or 0, probes["bf16"]["convolution_ratio"] or 0) > 1.1
    assert (finding is not None and finding.verdict == "yes") == slow


def test_the_record_of_a_run_without_scaling_has_no_scale(tmp_path: Path) -> None:
    run = captured(tmp_path, lambda: torch.ones(2).sum().item() and None)
    assert run.record is not None
    assert run.record.loss_scale is None
