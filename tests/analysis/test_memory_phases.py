"""Peaks of memory by phase: scenario M02, validation that keeps what only backward needs."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.analysis.memory.pressure import MemoryPressure
from workbench.findings import Facts
from workbench.findings.memory_limit import memory_limit

WIDTH, LAYERS, VALIDATED = 256, 6, 2048
KEPT = VALIDATED * WIDTH * 4
"""Bytes of one layer's result for the validation batch."""


def recorded(path: Path, *, grad: bool) -> wb.Run:
    """Two steps on 64 samples, each followed by a validation on 2,048."""
    layers = [each for _ in range(LAYERS) for each in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    small, large = torch.ones(64, WIDTH), torch.ones(VALIDATED, WIDTH)
    with torch.profiler.profile(profile_memory=True) as profiler:
        for number in range(2):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                model(small).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            with (
                torch.profiler.record_function("validation"),
                contextlib.nullcontext() if grad else torch.no_grad(),
            ):
                model(large).square().mean()
    profiler.export_chrome_trace(str(path))
    return wb.open(path)


def peaks(run: wb.Run) -> dict[str, int]:
    assert run.memory_phases is not None
    return dict(zip(run.memory_phases["phase"], run.memory_phases["peak_bytes"], strict=True))


@pytest.mark.slow
def test_validation_under_autograd_is_told_apart_from_one_without(tmp_path: Path) -> None:
    """With autograd all six ReLU results live at once; without it a layer's input and output do."""
    run = recorded(tmp_path / "kept.json", grad=True)
    found = peaks(run)
    assert found["validation"] >= LAYERS * KEPT
    assert found["validation"] > max(found["forward"], found["backward"])
    assert max(found.values()) == run.rank().memory_devices[0].peak_bytes
    finding = next(each for each in run.findings if each.code == "WB501")
    assert "Validation holds" in finding.title
    assert "no_grad" in finding.advice
    quiet = recorded(tmp_path / "free.json", grad=False)
    assert KEPT <= peaks(quiet)["validation"] < LAYERS * KEPT
    assert quiet.memory_phases is not None
    assert quiet.memory_phases.set_index("phase")["autograd"]["validation"] == False  # noqa: E712
    assert not [each for each in quiet.findings if each.code == "WB501"]


HELD = MemoryPressure(
    device="GPU 0",
    peak_bytes=8 * 10**9,
    limit_bytes=40 * 10**9,
    steps=0,
    bytes_per_step=0.0,
    worst_bytes_per_step=0.0,
    median_bytes_per_step=0.0,
    chance=1.0,
    grows=False,
    largest="",
    training_peak_bytes=4_500_000_000,
    validation_peak_bytes=8_000_000_000,
    validation_autograd=True,
)


def test_the_rule_names_both_peaks() -> None:
    """As in fairchem's pull request 199: training peaks at 4.5 GB, validation at 8."""
    found = memory_limit(Facts(memory_pressure=HELD))
    assert found is not None
    assert found.evidence["validation_peak_bytes"] == 8_000_000_000
    assert found.severity == "warning"


@pytest.mark.parametrize(
    "quiet",
    [
        replace(HELD, validation_autograd=False),
        replace(HELD, validation_autograd=None),
        replace(HELD, validation_peak_bytes=4_000_000_000),
        replace(HELD, validation_peak_bytes=None),
        replace(HELD, training_peak_bytes=None),
    ],
)
def test_without_graph_below_training_or_unknown_it_is_silent(quiet: MemoryPressure) -> None:
    assert memory_limit(Facts(memory_pressure=quiet)) is None
