"""Models as people write them, in every mode and with its options: numbers as in one process."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from tests.parallel.test_parity import train
from workbench.errors import WorkbenchError
from workbench.parallel.launch import launch
from workbench.parallel.rank import Rank
from workbench.parallel.spread import random_states, set_random_states, spread
from workbench.settings import Parallel, Settings
from workbench.workload import Workload, prepare

pytestmark = pytest.mark.soak


class Attention(nn.Module):
    """Counts its heads in an attribute, as most do."""

    def __init__(self) -> None:
        super().__init__()
        self.n_heads, self.size = 4, 4
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(16, 16) for _ in range(3))
        self.o_proj = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, long, _ = x.shape
        q, k, v = (
            layer(x).view(rows, long, self.n_heads, self.size).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(rows, long, -1))


class Block(nn.Module):
    """Attention and feed-forward, each beside its input."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.attention = Attention()
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        return x + self.fc2(functional.gelu(self.fc1(self.second(x))))


class Language(nn.Module):
    """A small language model in plain modules."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(16, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x).flatten(0, 1)


class Tied(Language):
    """Its last layer is its first."""

    def __init__(self) -> None:
        super().__init__()
        self.head.weight = self.embedding.weight


class Encoder(nn.Module):
    """Torch's own layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(x))).flatten(0, 1)


def work(kind: type[nn.Module]) -> Workload:
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = TensorDataset(torch.randint(20, (32, 6)), torch.randint(20, (32, 6)))

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(output, target.flatten())

    made = Workload(model, data, loss=loss, optimizer=optimizer, batch_size=8)
    torch.manual_seed(7)
    return made


HALF = Parallel(mode="fsdp", param_dtype="bf16", reduce_dtype="fp32")
CASES: dict[str, tuple[type[nn.Module], Parallel, float]] = {
    "ddp in fp16": (Language, Parallel(mode="ddp", compression="fp16"), 1e-2),
    "ddp looking": (Language, Parallel(mode="ddp", find_unused_parameters=True), 1e-4),
    "ddp tied": (Tied, Parallel(mode="ddp"), 1e-4),
    "fsdp": (Language, Parallel(mode="fsdp"), 1e-4),
    "fsdp tied": (Tied, Parallel(mode="fsdp"), 1e-4),
    "fsdp in bf16": (Language, HALF, 2e-2),
    "fsdp copies": (Language, Parallel(mode="fsdp", shard_degree=1), 1e-4),
    "fsdp kept": (Encoder, Parallel(mode="fsdp", reshard_after_forward=False), 1e-4),
    "tp": (Language, Parallel(mode="tp"), 1e-4),
    "tp tied": (Tied, Parallel(mode="tp"), 1e-4),
    "tp encoder": (Encoder, Parallel(mode="tp"), 1e-4),
    "pp": (Language, Parallel(mode="pp"), 1e-4),
    "pp by name": (Language, Parallel(mode="pp", split=("blocks.1",)), 1e-4),
    "pp encoder": (Encoder, Parallel(mode="pp"), 1e-4),
    "pp tied": (Tied, Parallel(mode="pp", split=("blocks.2",)), 0.0),
}


def every_case(rank: Rank, payload: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(1)
    rank.join("gloo", 120)
    found: dict[str, Any] = {}
    for name, (kind, parallel, _) in payload["cases"].items():
        made = payload["work"](kind)
        set_random_states(payload["random"])
        try:
            with spread(made, Settings(parallel=parallel), rank) as training:
                found[name] = train(training, 4)
        except WorkbenchError as error:
            found[name] = str(error)
    return found


@pytest.fixture(scope="module")
def ranks() -> tuple[Any, ...]:
    work(Language)
    payload = {"cases": CASES, "work": work, "random": random_states()}
    return launch(every_case, payload, world_size=2, time_limit_s=280)


@pytest.mark.parametrize("name", CASES)
def test_a_model_trains_as_in_one_process(ranks: tuple[Any, ...], name: str) -> None:
    kind, parallel, tolerance = CASES[name]
    first, second = (rank[name] for rank in ranks)
    if not tolerance:
        assert "copies of weights" in first
        return
    with prepare(work(kind)) as training:
        expected = train(training, 4)
    if parallel.divides_batches:
        assert not isinstance(first, str), first
        given = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    else:
        given = second if parallel.mode == "pp" else first
    assert given == pytest.approx(expected, rel=tolerance)
