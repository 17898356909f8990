"""What does a step get from its control when gradients are scaled?"""

import torch
from torch import nn

from workbench.workload import Control


def _control(scaler: torch.amp.GradScaler | None) -> Control:
    return Control(
        device=torch.device("cpu"),
        precision=None,
        scaler=scaler,
        accumulation=1,
        non_blocking=False,
        channels_last=False,
    )


def _weight_after(loss_factor: float, scaler: torch.amp.GradScaler | None) -> float:
    """One step of plain descent at rate 1 from weight 1, where the gradient is the factor."""
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    control = _control(scaler)
    with control.forward():
        loss = (weight * loss_factor).sum()
    control.backward(loss)
    control.optimizer_step(optimizer)
    return weight.item()


def test_scaled_gradients_are_unscaled_before_the_step() -> None:
    assert _weight_after(0.25, None) == 0.75
    assert _weight_after(0.25, torch.amp.GradScaler("cpu", init_scale=1024.0)) == 0.75


def test_a_step_whose_gradients_overflow_is_skipped_and_the_scale_falls() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, backoff_factor=0.5)
    assert _weight_after(float("inf"), scaler) == 1.0
    assert scaler.get_scale() == 512.0


def test_micro_batches_without_accumulation_are_the_batch_itself() -> None:
    batch = object()
    assert list(_control(None).micro_batches(batch)) == [(batch, 1.0)]
