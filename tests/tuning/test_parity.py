"""Do two settings compute the same numbers?"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

import workbench as wb
from tests.tuning.loops import network, rows, state_bytes, training
from workbench.errors import SettingError
from workbench.tuning.numbers import parity
from workbench.tuning.parity import Numbers, judge
from workbench.tuning.running import _length

SAME = Numbers(losses=(2.0, 1.9, 1.8), gradient_norms=(0.5, 0.4, 0.4), output=np.ones(4))


def numbers(**changed: Any) -> Numbers:
    given = {"losses": SAME.losses, "gradient_norms": SAME.gradient_norms, "output": SAME.output}
    return Numbers(**{**given, **changed})


def test_the_same_numbers_are_as_expected_with_differences_of_zero():
    found = judge(SAME, SAME, SAME)
    assert found.verdict == "as_expected"
    assert (found.loss_difference, found.noise, found.unit) == (0.0, 0.0, 2.0**-23)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_a_loss_that_is_off_by_one_percent_differs_in_every_precision(precision: str):
    # 1 % of bf16 numbers, which lie 0.78 % apart near 1, is more than one of their roundings.
    found = judge(SAME, SAME, numbers(losses=(2.02, 1.919, 1.818), precision=precision))
    assert found.verdict == "differs"
    assert found.loss_difference == pytest.approx(0.0099, abs=1e-4)
    assert "loss differs by 0.99 %" in found.reason


def test_rounding_of_low_precision_is_expected_and_the_same_in_fp32_is_not():
    off = {"losses": (2.004, 1.906, 1.807), "output": np.ones(4) * 1.01}
    assert judge(SAME, SAME, numbers(precision="bf16", **off)).verdict == "as_expected"
    assert judge(SAME, SAME, numbers(**off)).verdict == "differs"


def test_what_the_loop_differs_from_itself_is_allowed():
    # Without seeds the loop's first losses differ by 2 % by themselves: 3 % can be that as well.
    again, other = numbers(losses=(2.04, 1.9, 1.8)), numbers(losses=(2.06, 1.9, 1.8))
    assert judge(SAME, SAME, other).verdict == "differs"
    found = judge(SAME, again, other)
    assert found.verdict == "as_expected"
    assert found.noise == pytest.approx(0.04 / 2.04)


def test_what_the_loop_makes_of_one_rounding_of_its_weights_is_allowed():
    # Twenty evaluations a step: LBFGS turns a rounding into another way down.
    other = numbers(losses=(2.0, 1.0, 0.4))
    assert judge(SAME, SAME, other).verdict == "diverges"
    nudged = numbers(losses=(2.0, 1.2, 0.9))
    assert judge(SAME, SAME, other, nudged=nudged).verdict == "as_expected"
    first_off = numbers(losses=(2.02, 1.0, 0.4))
    assert judge(SAME, SAME, first_off, nudged=nudged).verdict == "differs"


def test_a_wrong_update_differs_though_the_first_loss_is_right():
    found = judge(SAME, SAME, numbers(losses=(2.0, 1.95, 1.7)))
    assert found.verdict == "differs"
    assert found.loss_difference == 0.0
    assert found.later_difference == pytest.approx(0.1 / 1.8)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"losses": (2.0, float("nan"), float("nan"))}, "loss of step 2 is nan"),
        ({"gradient_norms": (float("inf"), 0.4, 0.4)}, "gradient norm of step 1 is inf"),
        ({"losses": (2.0, 3.0, 9.0)}, "differ by 80 %"),
    ],
)
def test_what_leaves_its_way_diverges(changed: dict, said: str):
    found = judge(SAME, SAME, numbers(**changed))
    assert found.verdict == "diverges"
    assert said in found.reason


def test_nan_on_both_sides_is_the_loops_own():
    broken = numbers(losses=(2.0, float("nan"), float("nan")))
    found = judge(broken, broken, broken)
    assert found.verdict == "as_expected"
    assert "2 of 3 losses are NaN or infinite with and without it" in found.reason
    assert "NaN" not in judge(SAME, SAME, SAME).reason


def test_a_loop_without_a_finite_loss_has_no_numbers_to_compare():
    # Its outputs and gradients are the same, and say nothing of what it learns.
    lost = numbers(losses=(float("nan"), float("nan"), float("inf")))
    found = judge(lost, lost, lost)
    assert found.verdict == "cannot_tell"
    assert "all losses are NaN or infinite, with and without it" in found.reason
    # What does differ is evidence all the same: 10 % of the output is no rounding of fp32.
    other = numbers(losses=lost.losses, output=np.ones(4) * 1.1)
    assert judge(lost, lost, other).verdict == "differs"


def test_skipped_optimizer_steps_differ():
    found = judge(SAME, SAME, numbers(skipped_steps=2, precision="fp16"))
    assert (found.verdict, found.skipped_steps) == ("differs", 2)
    assert "2 of 3 optimizer steps were skipped" in found.reason


def test_where_nothing_can_be_seen_nobody_can_tell():
    blind = Numbers(losses=(None, None), gradient_norms=(None, None))
    found = judge(blind, blind, blind)
    assert found.verdict == "cannot_tell"
    assert "return its loss" in found.reason
    assert found.to_json()["loss_difference"] is None


def test_clipped_gradients_are_no_difference():
    clipped = numbers(gradient_norms=(0.1, 0.1, 0.1), losses=(2.0, 1.95, 1.9))
    assert judge(SAME, SAME, clipped).verdict == "differs"
    assert judge(SAME, SAME, clipped, by_design=["clip_norm"]).verdict == "as_expected"


def test_bf16_of_a_real_loop_is_as_expected_and_leaves_no_trace():
    work = training()
    before = state_bytes(work)
    found = parity(work, wb.Settings(precision="bf16"))
    assert found.verdict == "as_expected", found
    assert found.precision == "bf16"
    assert 0 < found.loss_difference < 2.0**-7
    assert found.gradient_difference > 0
    assert found.output_difference > 0
    assert found.noise == 0.0  # dropout draws the same numbers from the same random state
    assert state_bytes(work) == before


def test_cutting_a_batch_into_micro_batches_is_as_expected_in_fp32():
    plain = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    found = parity(training(model=plain), wb.Settings(accumulation=2))
    assert found.verdict == "as_expected", found
    assert found.precision == "fp32"


class Wrong(nn.Module):
    """Computes one percent too much under autocast: a planted fault of the setting."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = network()

    def forward(self, batch: Tensor) -> Tensor:
        answer: Tensor = self.layers(batch)
        return answer * 1.03 if torch.is_autocast_enabled("cpu") else answer


def off_by_a_percent(output: Tensor, target: Tensor) -> Tensor:
    """A loss that is 1 % too large under autocast."""
    loss = functional.cross_entropy(output.float(), target)
    return loss * 1.01 if torch.is_autocast_enabled("cpu") else loss


def test_a_setting_that_changes_the_loss_by_one_percent_is_found():
    model = network()
    work = wb.Workload(
        model,
        DataLoader(rows(), batch_size=32),
        loss=off_by_a_percent,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )
    found = parity(work, wb.Settings(precision="bf16"))
    assert found.verdict == "differs", found
    assert found.loss_difference == pytest.approx(0.01, abs=0.004)


def test_an_output_that_is_off_is_found_where_there_is_no_loss():
    work = wb.Workload(Wrong().eval(), DataLoader(rows(), batch_size=32))
    found = parity(work, wb.Settings(precision="bf16"))
    assert found.loss_difference is None
    assert found.gradient_difference is None
    assert found.output_difference == pytest.approx(0.03, abs=0.01)
    right = wb.Workload(network().eval(), DataLoader(rows(), batch_size=32))
    assert parity(right, wb.Settings(precision="bf16")).verdict == "as_expected"


def test_a_step_of_ones_own_is_compared_by_what_it_returns_and_by_its_gradients():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(model: nn.Module, batch: Any) -> None:
        loss = functional.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    work = wb.Workload(model, DataLoader(rows(), batch_size=8), step=step)
    found = parity(work, wb.Settings(precision="bf16"))
    assert found.verdict == "as_expected", found
    assert found.loss_difference is None  # the step keeps it to itself
    assert 0 < found.gradient_difference < 0.05
    assert found.output_difference > 0


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, torch.optim.SGD])
def test_optimizers_with_and_without_closures(kind: Callable[..., torch.optim.Optimizer]):
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = kind(model.parameters(), lr=0.01)
    work = wb.Workload(
        model,
        DataLoader(rows(), batch_size=32),
        loss=functional.cross_entropy,
        optimizer=optimizer,
    )
    found = parity(work, wb.Settings(accumulation=2))
    assert found.verdict == "as_expected", found
    assert found.gradient_difference is not None


def test_forward_and_backward_alone_leave_their_gradients_to_be_compared():
    work = wb.Workload(network(), DataLoader(rows(), batch_size=8), loss=functional.cross_entropy)
    assert parity(work, wb.Settings(precision="bf16")).gradient_difference > 0


def test_settings_of_the_loader_compute_the_same():
    assert parity(training(), wb.Settings(workers=2, pin_memory=False)).verdict == "as_expected"


def test_a_larger_batch_of_a_mean_loss_counts_each_sample_as_before():
    # Dropout is 0 here on both sides: the mean over 32 samples is the mean of four means over 8.
    found = parity(training(), wb.Settings(batch_size=32))
    assert found.verdict == "as_expected", found
    assert found.loss_difference < 256 * 2.0**-23
    assert "only a whole training can tell" in found.reason


def summed(output: Tensor, target: Tensor) -> Tensor:
    """A loss that grows with the batch."""
    return functional.cross_entropy(output, target, reduction="sum")


def test_a_larger_batch_of_a_summed_loss_cannot_be_told():
    # Four times the samples, four times the loss: 3/4 of it is the difference.
    work = wb.Workload(network(), DataLoader(rows(), batch_size=8), loss=summed)
    found = parity(work, wb.Settings(batch_size=32))
    assert found.verdict == "cannot_tell"
    assert found.loss_difference == pytest.approx(0.75, abs=1e-3)
    assert "depends on its batch" in found.reason


def test_samples_that_see_each_other_make_another_loss_of_another_batch():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    found = parity(training(model=model), wb.Settings(batch_size=32, precision="bf16"))
    assert found.verdict in {"cannot_tell", "as_expected"}
    assert found.gradient_difference > 0  # of the precision, on batches of the same size
    plain = parity(training(model=model), wb.Settings(batch_size=32))
    assert plain.verdict == "cannot_tell"
    # On the same batches the norm sees the same samples; cut in two it does not.
    assert parity(training(model=model), wb.Settings(precision="bf16")).verdict == "as_expected"
    halves = parity(training(model=model), wb.Settings(accumulation=2))
    assert halves.verdict == "differs"
    assert "the first loss differs" in halves.reason


def test_a_setting_that_does_not_run_cannot_be_told():
    found = parity(training(), wb.Settings(channels_last=True))
    assert found.verdict == "cannot_tell"
    assert "4-d weights" in found.reason


def test_steps_that_write_into_their_batch_meet_it_fresh():
    class Normalising(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = network()

        def forward(self, batch: Tensor) -> Tensor:
            answer: Tensor = self.layers(batch.add_(1))
            return answer

    work = training(DataLoader(rows(), batch_size=8, num_workers=1), Normalising())
    assert parity(work, wb.Settings(precision="bf16")).verdict == "as_expected"


def test_a_number_of_steps_that_makes_no_sense_is_refused():
    with pytest.raises(SettingError, match="steps=0"):
        parity(training(), wb.Settings(precision="bf16"), steps=0)


@pytest.mark.slow
def test_compiled_code_is_as_expected_though_it_draws_other_random_numbers():
    found = parity(training(), wb.Settings(compile=True))
    assert found.verdict == "as_expected", found
    assert "dropout 0" in found.reason
    assert found.loss_difference < 1e-5


def test_an_output_that_lost_numbers_to_nan_diverges_though_the_rest_is_the_same():
    whole = Numbers(losses=(), gradient_norms=(), output=np.array([1.0, 2.0, 3.0]))
    lost = Numbers(losses=(), gradient_norms=(), output=np.array([1.0, np.nan, np.inf]))
    found = judge(whole, whole, lost)
    assert found.verdict == "diverges"
    assert "2 numbers" in found.reason
    # What the loop has of its own is no difference.
    assert judge(lost, lost, lost).verdict == "as_expected"


def test_complex_weights_are_compared_by_both_their_parts():
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([[1j]], dtype=torch.complex64))

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return rows.to(torch.complex64) @ self.weight

    # d mean|w x|² / dw is imaginary where w is: its real part alone would be a norm of 0.
    assert _length([torch.tensor([3 + 4j])]) == pytest.approx(5.0)
    model = Turned()
    work = wb.Workload(
        model,
        [(torch.ones(4, 1), torch.zeros(4))],
        loss=lambda output, target: (output.abs() ** 2).mean(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    )
    found = parity(work, wb.Settings(accumulation=2))
    assert found.verdict == "as_expected"
    assert found.gradient_difference is not None


def test_a_loss_whose_terms_cancel_may_differ_by_what_it_makes_of_one_rounding():
    """Off by 0.93 % under bf16, whose rounding is 0.78 %; one rounding of weights makes 0.5 %."""
    a, b = (Numbers(losses=(x,), gradient_norms=(1.0,)) for x in (1.0, 1.0093))
    b = replace(b, precision="bf16")
    nudged = replace(a, losses=(1.005,))
    assert judge(a, a, b).verdict == "differs"
    assert judge(a, a, b, nudged=nudged).verdict == "as_expected"
    far = replace(b, losses=(1.02,))  # more than three times that
    assert judge(a, a, far, nudged=nudged).verdict == "differs"
