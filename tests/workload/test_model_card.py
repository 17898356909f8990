"""The card of a model against arithmetic by hand; a multiply-add is two FLOPs, a number 4 bytes."""

import copy

import pytest
import torch
from torch import Tensor, nn

import workbench as wb
from workbench.errors import WorkloadError
from workbench.workload import model_card

pytestmark = pytest.mark.slow


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))


def test_an_mlp_to_the_digit() -> None:
    """10x20+20 and 20x3+3 parameters. Forward 2(200+60).

    Backward: both weights, and the input of the second layer; that of the first needs none.
    Kept of 4 samples: ReLU's 80 numbers, the log-softmax' 12 and the loss' total weight.
    """
    model = mlp()
    batch = (torch.randn(4, 10), torch.zeros(4, dtype=torch.long))
    adam = torch.optim.Adam(model.parameters())
    work = wb.Workload(model, [batch], loss=nn.functional.cross_entropy, optimizer=adam)
    card = model_card(work)
    assert card.parameters == 220 + 63
    assert card.parameter_bytes == card.gradient_bytes == {"float32": 4 * 283}
    assert card.forward_flops_per_sample == 2 * (200 + 60)
    assert card.backward_flops_per_sample == 2 * (200 + 60 + 60)
    assert card.activation_bytes == 4 * (80 + 12 + 1)
    assert card.optimizer_bytes == 2 * 4 * 283 + 4 * 4, "two numbers a weight, a count a tensor"
    assert card.data_bytes_per_sample == 40 + 8
    rows = card.table().set_index("module")
    assert rows.loc["0", "forward_flops_per_sample"] == 400
    assert rows.loc["2", "backward_flops_per_sample"] == 240


def test_momentum_keeps_one_number_a_weight_and_nothing_is_stepped() -> None:
    model = mlp()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    before = copy.deepcopy(model.state_dict())
    work = wb.Workload(model, [torch.randn(2, 10)], loss=nn.MSELoss(), optimizer=sgd)
    assert model_card(work).optimizer_bytes == 4 * 283
    assert not sgd.state
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())


def test_a_convolution_with_stride() -> None:
    """3 to 8 channels by 3x3, 32 to 16 pixels: 2 x 8 x 16 x 16 x 27. Backward the weight alone."""
    model = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
    card = model_card(model, torch.randn(5, 3, 32, 32))
    assert card.forward_flops_per_sample == 2 * 8 * 16 * 16 * 27
    assert card.backward_flops_per_sample == 2 * 8 * 16 * 16 * 27
    assert card.samples == 5


class Block(nn.Module):
    """A block of a GPT: width 32, 4 heads."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (p.view(b, t, 4, 8).transpose(1, 2) for p in self.qkv(self.norm(x)).split(32, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(x)


def test_a_gpt_block() -> None:
    """Of 16 tokens: weights 3x32² + 32² + 2x32x128, attention 2 x 16² x 32 multiply-adds.

    Backward is twice that: the input's gradient is needed for the norm's weight.
    """
    card = model_card(Block(), torch.randn(2, 16, 32))
    forward = 2 * (16 * (4 * 32**2 + 2 * 32 * 128) + 2 * 16**2 * 32)
    assert card.forward_flops_per_sample == forward
    assert card.backward_flops_per_sample == 2 * forward


def test_a_model_that_looks_at_numbers_says_where() -> None:
    class Looks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum().item() > 0 else -x

    model = nn.Sequential(nn.Linear(2, 2), Looks())
    with pytest.raises(WorkloadError, match=r"does not work on the meta device.*In 1: "):
        model_card(model, torch.ones(1, 2))


def test_hooks_and_random_numbers_of_the_user_stay_out() -> None:
    seen: list[object] = []
    model = nn.Sequential(nn.Linear(10, 10), nn.Dropout())
    model.register_forward_hook(lambda *_: seen.append(1))
    state = torch.get_rng_state()
    data = torch.utils.data.TensorDataset(torch.ones(50, 10))
    card = model_card(wb.Workload(model, data, batch_size=7, step=lambda *_: None))
    assert card.samples == 7
    assert not seen
    assert torch.equal(torch.get_rng_state(), state)


def test_it_shows_itself_as_text_and_html() -> None:
    card = model_card(mlp(), torch.ones(1, 10))
    bundle = card._repr_mimebundle_()
    assert "FLOPs a sample, forward   520 FLOP" in bundle["text/plain"]
    assert "<table>" in bundle["text/html"]


def test_a_module_alone_needs_a_batch() -> None:
    with pytest.raises(WorkloadError, match="tells no shape of its input"):
        model_card(mlp())
