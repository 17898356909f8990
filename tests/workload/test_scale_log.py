"""The scale of fp16 gradients over a run: which steps overflowed, and what it ended at."""

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from workbench.workload.control import Control


def control_of(scale: float, growth_interval: int = 2000) -> tuple[Control, nn.Linear, GradScaler]:
    scaler = GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
    return Control(device=torch.device("cpu"), scaler=scaler), nn.Linear(2, 1), scaler


def step(control: Control, model: nn.Linear, optimizer: torch.optim.Optimizer, x: float) -> None:
    optimizer.zero_grad()
    control.backward(model(torch.full((1, 2), x)).sum())
    control.optimizer_step(optimizer)


def test_an_overflow_halves_the_scale_and_is_named_by_its_step() -> None:
    """Steps 0, 1 and 3 are finite; step 2 has an infinite input, so an infinite gradient."""
    control, model, _ = control_of(1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for x in (1.0, 1.0, float("inf"), 1.0):
        step(control, model, optimizer, x)
    assert control.scales.to_json() == {
        "steps": 4,
        "scales": [[0, 1024.0], [2, 512.0]],
        "skipped_at": [2],
        "growth_interval": 2000,
    }


def test_growth_after_its_interval_is_no_skipped_step() -> None:
    control, model, _ = control_of(1024.0, growth_interval=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for _ in range(3):
        step(control, model, optimizer, 1.0)
    found = control.scales.to_json()
    assert found is not None
    assert found["scales"] == [[0, 1024.0], [1, 2048.0]]
    assert found["skipped_at"] == []


def test_a_fused_optimizer_shows_its_skipped_step_by_the_scale_alone() -> None:
    control, model, _ = control_of(1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, fused=True)
    for x in (1.0, float("inf"), 1.0):
        step(control, model, optimizer, x)
    found = control.scales.to_json()
    assert found is not None
    assert found["skipped_at"] == [1]


def test_without_scaling_there_is_nothing() -> None:
    control = Control(device=torch.device("cpu"))
    model = nn.Linear(2, 1)
    step(control, model, torch.optim.SGD(model.parameters(), lr=0.1), 1.0)
    assert control.scales.to_json() is None
