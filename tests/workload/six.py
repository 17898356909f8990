"""Six kinds of training loop, all tiny: the ones that every switch is tried on.

``scale`` makes their models wider and their data longer, for benchmarks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from workbench.workload import Workload

CLASSES = 4


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _labels(count: int) -> Tensor:
    return torch.randint(0, CLASSES, (count,), generator=_generator(1))


def _work(model: nn.Module, data: Any, name: str, **others: Any) -> Workload:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return Workload(
        model,
        data,
        loss=functional.cross_entropy,
        **{"optimizer": optimizer, "name": name, **others},
    )


class Block(nn.Module):
    """A convolution with batch norm, dropout and a way around them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + self.dropout(functional.relu(self.norm(self.convolution(inputs))))


def _conv_net(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2),
        Block(width),
        Block(width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, CLASSES),
    )


def cnn(folder: Path, scale: int = 1) -> Workload:
    """Pictures in memory; plain descent with momentum and a schedule, one step taken before."""
    torch.manual_seed(0)
    model, count = _conv_net(8 * scale), 24 * scale
    pictures = torch.randn(count, 3, 12, 12, generator=_generator(2))
    loader = DataLoader(
        TensorDataset(pictures, _labels(count)), 6, shuffle=True, generator=_generator(3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    functional.cross_entropy(model(pictures[:6]), _labels(6)).backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    return _work(model, loader, "cnn", optimizer=optimizer, scheduler=scheduler)


class Layer(nn.Module):
    """Attention and a feed-forward net, as in GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        batch, length, width = inputs.shape
        parts = self.qkv(self.before(inputs)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        inputs = inputs + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return inputs + self.feed(self.between(inputs))


class Gpt(nn.Module):
    """Predicts the next token; input and output share their weight."""

    def __init__(self, width: int, tokens: int = 17) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.layers = nn.Sequential(Layer(width, 2), Layer(width, 2))
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layers(self.embedding(tokens))).transpose(1, 2)


def transformer(folder: Path, scale: int = 1) -> Workload:
    """Sequences of tokens; tied weights."""
    torch.manual_seed(0)
    text = torch.randint(0, 17, (16 * scale, 9), generator=_generator(4))
    loader = DataLoader(TensorDataset(text[:, :-1], text[:, 1:].contiguous()), 4, shuffle=True)
    return _work(Gpt(16 * scale), loader, "transformer")


class Table(Dataset[tuple[np.ndarray, int]]):
    """Rows of a table that can be asked for one by one or many at once."""

    def __init__(self, rows: int) -> None:
        self.numbers = np.random.default_rng(5).normal(size=(rows, 12)).astype(np.float32)
        self.labels = _labels(rows).tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return self.numbers[index], self.labels[index]

    def __getitems__(self, indices: list[int]) -> list[tuple[np.ndarray, int]]:
        return [(self.numbers[i], self.labels[i]) for i in indices]


def mlp(folder: Path, scale: int = 1) -> Workload:
    """Rows of a table; the first layer is frozen, and a weight carries a hook."""
    torch.manual_seed(0)
    width = 16 * scale
    model = nn.Sequential(
        nn.Linear(12, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Linear(width, CLASSES)
    )
    model[0].requires_grad_(False)
    model[3].weight.register_hook(_halve)
    return _work(model, Table(24 * scale), "mlp", batch_size=6)


def _halve(gradient: Tensor) -> Tensor:
    return gradient / 2


class Reader(nn.Module):
    """An LSTM over a sequence, and a layer on its last output."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, width, batch_first=True)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, sequence: Tensor) -> Tensor:
        return self.out(self.lstm(sequence)[0][:, -1])


def rnn(folder: Path, scale: int = 1) -> Workload:
    """Sequences of numbers."""
    torch.manual_seed(0)
    count = 16 * scale
    rows = torch.randn(count, 7, 3, generator=_generator(6))
    loader = DataLoader(TensorDataset(rows, _labels(count)), 4)
    return _work(Reader(8 * scale), loader, "rnn")


class Chain(nn.Module):
    """Many operators on few numbers each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gains = nn.ParameterList(nn.Parameter(torch.ones(width)) for _ in range(8))
        self.out = nn.Linear(width, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        for gain in self.gains:
            inputs = torch.tanh(inputs * gain + 0.1)
        return self.out(inputs)


def tiny_ops(folder: Path, scale: int = 1) -> Workload:
    """A chain of small operators; a scheduler by a closure."""
    torch.manual_seed(0)
    model, count = Chain(6), 20 * scale
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.99**step)
    rows = torch.randn(count, 6, generator=_generator(7))
    data = TensorDataset(rows, _labels(count))
    return _work(model, data, "tiny_ops", batch_size=5, optimizer=optimizer, scheduler=scheduler)


class Folder(Dataset[tuple[Tensor, int]]):
    """JPEG files below a folder, read and decoded one by one."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(str(path) for path in folder.glob("*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        from PIL import Image

        with Image.open(self.files[index]) as picture:
            pixels = np.asarray(picture.convert("RGB"), dtype=np.float32) / 255
        return torch.from_numpy(pixels).permute(2, 0, 1), index % CLASSES


def image_folder(folder: Path, scale: int = 1) -> Workload:
    """Pictures on disk."""
    torch.manual_seed(0)
    if not any(folder.glob("*.jpg")):
        write_pictures(folder, count=18 * scale, size=16 * scale)
    loader = DataLoader(Folder(folder), 6, shuffle=True, generator=_generator(8))
    return _work(_conv_net(8 * scale), loader, "image_folder")


def write_pictures(folder: Path, *, count: int, size: int) -> None:
    """Write JPEG files of coloured noise."""
    from PIL import Image

    random = np.random.default_rng(9)
    for number in range(count):
        pixels = random.integers(0, 256, (size, size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:04}.jpg", quality=80)


SIX: dict[str, Callable[..., Workload]] = {
    make.__name__: make for make in (cnn, transformer, mlp, rnn, tiny_ops, image_folder)
}
"""Each takes the folder that its files go to, and ``scale``."""

BLOCKS = {
    "cnn": "Block",
    "transformer": "Layer",
    "mlp": "0",
    "rnn": "lstm",
    "tiny_ops": "Chain",
    "image_folder": "Block",
}
"""A module type or name in each model whose activations can be checkpointed."""
