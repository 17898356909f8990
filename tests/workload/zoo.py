"""Ten kinds of model and loader, all tiny."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    get_worker_info,
)

from workbench.workload import Workload


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int = 24) -> TensorDataset:
    inputs = torch.randn(count, 3, 8, 8, generator=generator(1))
    return TensorDataset(inputs, torch.arange(count) % 4)


class ConvNet(nn.Sequential):
    """Convolution, batch norm, dropout: buffers that move, and random numbers."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Flatten(),
            nn.Linear(256, 4),
        )


def cnn() -> Workload:
    """Momentum exists already, the schedule has moved, gradients are left from an earlier step."""
    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=500)
    loader = DataLoader(pictures(), batch_size=6, shuffle=True, generator=generator(2))
    inputs, targets = next(iter(loader))
    functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
    scheduler.step()
    return Workload(
        model, loader, loss=nn.CrossEntropyLoss(), optimizer=optimizer, scheduler=scheduler
    )


class Words(Dataset[dict[str, Tensor]]):
    """Dictionaries, with a random generator and a count of its own."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(3)
        self.reads = 0

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        self.reads += 1
        tokens = torch.as_tensor(self.random.integers(0, 11, size=5))
        return {"tokens": tokens, "labels": tokens.roll(-1)}


class LanguageModel(nn.Module):
    """A transformer layer with tied weights; it computes its own loss and keeps its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.calls = 0
        self.last: Tensor | None = None

    def forward(self, tokens: Tensor, labels: Tensor) -> dict[str, Tensor]:
        self.calls += 1
        logits = self.head(self.layer(self.embedding(tokens)))
        self.last = logits
        return {"loss": functional.cross_entropy(logits.flatten(0, 1), labels.flatten())}


def transformer() -> Workload:
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters())
    return Workload(model, Words(), optimizer=optimizer, batch_size=4)


class Rnn(nn.Module):
    """Reads a sequence, and scales its answer by a second input."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 6, batch_first=True)
        self.out = nn.Linear(6, 2)

    def forward(self, sequence: Tensor, scale: Tensor) -> Tensor:
        return self.out(self.lstm(sequence)[0][:, -1]) * scale[:, None]


def rnn() -> Workload:
    """Two inputs and a target; a list of batches; forward and backward only."""
    batches = [(torch.randn(4, 5, 3), torch.ones(4), torch.randint(0, 2, (4,))) for _ in range(3)]
    return Workload(Rnn(), batches, loss=functional.cross_entropy)


def frozen() -> Workload:
    """Only the head learns; the body stays in eval mode, a parameter carries a hook."""
    body, head = ConvNet().requires_grad_(False).eval(), nn.Linear(4, 4)
    head.weight.register_hook(lambda grad: grad * 2)
    model = nn.Sequential(body, head)
    optimizer = torch.optim.Adam(head.parameters())
    loader = DataLoader(pictures(), batch_size=5, shuffle=True, drop_last=True)
    return Workload(model, loader, loss=functional.cross_entropy, optimizer=[optimizer])


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    """Divides itself among workers, and remembers how far it came."""

    def __init__(self) -> None:
        self.position = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        info = get_worker_info()
        first, stride = (0, 1) if info is None else (info.id, info.num_workers)
        for self.position in range(first, 12, stride):
            yield torch.full((3,), float(self.position)), torch.tensor(self.position % 2)


def iterable() -> Workload:
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    optimizer = torch.optim.RMSprop(model.parameters())
    loader = DataLoader(Stream(), batch_size=4)
    return Workload(model, loader, loss=functional.cross_entropy, optimizer=optimizer)


class Shuffler:
    """A loader of somebody's own, with a generator, a cursor and numbers of its own."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(4)
        self.rows = np.arange(24, dtype=np.float32).reshape(8, 3)
        self.epoch = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        self.epoch += 1
        self.random.shuffle(self.rows)
        for row in self.rows.reshape(4, 2, 3):
            yield torch.from_numpy(row.copy()), torch.tensor([0, 1])


def custom_loader() -> Workload:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    return Workload(model, Shuffler(), loss=functional.cross_entropy, optimizer=optimizer)


def batch_sampler() -> Workload:
    sampler = BatchSampler(RandomSampler(pictures(), generator=generator(5)), 4, drop_last=False)
    loader = DataLoader(pictures(), batch_sampler=sampler)
    model = ConvNet()
    optimizer = torch.optim.Adagrad(model.parameters())
    return Workload(model, loader, loss=functional.cross_entropy, optimizer=optimizer)


def inference() -> Workload:
    """A model in eval; its batch norm must not move, and neither may the user's grad mode."""
    return Workload(ConvNet().eval(), pictures(), batch_size=8)


def parametrized() -> Workload:
    """Power iteration moves hidden buffers; weights are computed; data is made by a function."""
    norms = nn.utils.parametrizations
    model = nn.Sequential(
        norms.weight_norm(nn.Linear(3, 6)),
        nn.Tanh(),
        norms.spectral_norm(nn.Linear(6, 2)),
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR
    optimizer = torch.optim.NAdam(model.parameters())
    rows = torch.randn(8, 3, generator=generator(7))

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for half in rows.split(4):
            yield half + torch.rand(1), torch.tensor([0, 1, 0, 1])

    return Workload(
        model,
        batches,
        loss=functional.cross_entropy,
        optimizer=optimizer,
        scheduler=scheduler(optimizer, lambda step: 0.9**step),
    )


class Average:
    """A running copy of the weights, as many trainers keep one."""

    def __init__(self, model: nn.Module) -> None:
        self.shadow = [p.detach().clone() for p in model.parameters()]
        self.updates = 0

    def update(self, model: nn.Module) -> None:
        self.updates += 1
        for kept, now in zip(self.shadow, model.parameters(), strict=True):
            kept.lerp_(now.detach(), 0.1)


steps_taken = 0
history: list[float] = []


def gan() -> Workload:
    """Two models, two optimizers, a schedule, a scaler, an average, counters: all through step."""
    maker, judge = (
        nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)),
        nn.Linear(3, 1),
    )
    of_maker = torch.optim.Adam(maker.parameters())
    of_judge = torch.optim.SGD(judge.parameters(), lr=0.1, momentum=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(of_judge, 2)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    average = Average(maker)
    rounds = 0

    def step(model: nn.Module, batch: Tensor) -> Tensor:
        nonlocal rounds
        global steps_taken  # noqa: PLW0603
        rounds += 1
        steps_taken += 1
        real, fake = batch[0], model(torch.randn(len(batch[0]), 2))
        of_judge.zero_grad()
        loss = (
            functional.softplus(-judge(real)).mean()
            + functional.softplus(judge(fake.detach())).mean()
        )
        scaler.scale(loss).backward()
        scaler.step(of_judge)
        scaler.update()
        schedule.step()
        of_maker.zero_grad()
        functional.softplus(-judge(fake)).mean().backward()
        of_maker.step()
        average.update(model)
        history.append(loss.item())
        return loss

    data = TensorDataset(torch.randn(16, 3, generator=generator(6)))
    return Workload(maker, data, step=step, batch_size=4)


ZOO: dict[str, Callable[[], Workload]] = {
    make.__name__: make
    for make in (
        *(cnn, transformer, rnn, frozen, iterable),
        *(custom_loader, batch_sampler, inference, parametrized, gan),
    )
}


def everything(work: Workload) -> tuple[Any, ...]:
    """All that belongs to a workload, for writing its state to bytes."""
    return (work.model, work.data, work.loss, work.optimizer, work.scheduler, work.step)
