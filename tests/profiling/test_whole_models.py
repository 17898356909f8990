"""FLOPs of whole models as a recorder sees them, against arithmetic by hand, to the digit."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from workbench.analysis.costs.cost import Cost
from workbench.analysis.costs.formulas import cost_of_noted
from workbench.recording.cost_modules import ModulePaths
from workbench.recording.costs import CostMode


def counted(model: nn.Module, step: Callable[[], object]) -> dict[str, int]:
    """FLOPs of the forward and of the backward pass."""
    paths = ModulePaths(model)
    mode = CostMode(paths, 300)
    with paths, mode:
        step()
    sums = {"f": 0, "b": 0}
    for each in mode.noted.values():
        cost = cost_of_noted(each.to_json())
        if isinstance(cost, Cost):
            for place in each.at:
                sums[place.lstrip("0123456789")[0]] += cost.flops
    return sums


class Basic(nn.Module):
    """The block of ResNet-18."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.a = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.b = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.short = nn.Conv2d(before, after, 1, stride, bias=False) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        made = functional.relu(self.norms[0](self.a(x)))
        made = self.norms[1](self.b(made))
        return functional.relu(made + (x if self.short is None else self.short(x)))


def resnet18() -> nn.Sequential:
    blocks: list[nn.Module] = []
    before = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Basic(before, after, stride), Basic(after, after, 1)]
        before = after
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 1000),
    )


def test_resnet18_forward_and_backward() -> None:
    """1 814 073 344 multiplications of a picture of 224², as papers and other counters say."""
    with torch.device("meta"):
        model, x = resnet18(), torch.empty(2, 3, 224, 224)
    found = counted(model, lambda: model(x).sum().backward())
    once = 2 * 2 * 1_814_073_344
    assert found["f"] == once
    # Gradients of input and weight, but of the first layer's input nobody asks for one.
    assert found["b"] == 2 * once - 2 * 2 * (112 * 112 * 64 * 3 * 49)


class Block(nn.Module):
    """A block of a GPT: causal attention, then two layers of four times the width."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            each.view(batch, length, self.heads, -1).transpose(1, 2)
            for each in self.qkv(self.norms[0](x)).chunk(3, -1)
        )
        made = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(made.transpose(1, 2).reshape(batch, length, width))
        made = functional.gelu(self.up(self.norms[1](x)))
        return x + self.down(made)


def test_a_gpt_block_forward_and_backward() -> None:
    batch, length, width, heads = 2, 16, 32, 4
    model = Block(width, heads)
    x = torch.randn(batch, length, width, requires_grad=True)
    found = counted(model, lambda: model(x).sum().backward())
    linear = 2 * batch * length * width * (3 + 1 + 4 + 4) * width
    pairs = length * (length + 1) // 2
    product = 2 * batch * heads * pairs * (width // heads)
    assert found["f"] == linear + 2 * product
    # Four gradients, and the scores once more, which were not kept.
    assert found["b"] == 2 * linear + 5 * product


def test_a_convolution_with_stride_and_groups() -> None:
    with torch.device("meta"):
        model, x = nn.Conv2d(8, 12, 3, stride=2, groups=4), torch.empty(5, 8, 17, 17)
    x.requires_grad_()
    found = counted(model, lambda: model(x).sum().backward())
    once = 2 * 5 * 12 * 8 * 8 * (8 // 4) * 9  # (17 − 3) // 2 + 1 = 8
    assert found == {"f": once, "b": 2 * once}
