"""Every mode trains the same numbers as one process on the same batches, within rounding."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from workbench.parallel.launch import launch
from workbench.parallel.rank import Rank
from workbench.parallel.spread import random_states, set_random_states, spread
from workbench.recording.compilation import compile_counters
from workbench.settings import Parallel, Settings
from workbench.workload import Workload, prepare

pytestmark = pytest.mark.slow

STEPS = 5
MODES: dict[str, Parallel] = {
    "ddp": Parallel(mode="ddp", bucket_mb=0.01, gradient_as_bucket_view=True),
    "fsdp": Parallel(mode="fsdp"),
    "tp": Parallel(mode="tp"),
    "pp": Parallel(mode="pp"),
    "pp by name": Parallel(mode="pp", split=("3",), micro_batches=4, schedule="gpipe"),
}
SETTINGS = {
    **{name: Settings(parallel=parallel) for name, parallel in MODES.items()},
    "ddp accumulated": Settings(parallel="ddp", accumulation=2),
    "ddp always reduced": Settings(
        parallel=Parallel(mode="ddp", no_sync=False, static_graph=True), accumulation=2
    ),
    "fsdp accumulated": Settings(parallel="fsdp", accumulation=2, clip_norm=0.5),
    "tp accumulated": Settings(parallel="tp", accumulation=2),
    "tp in bf16": Settings(parallel="tp", precision="bf16"),
    "pp in bf16": Settings(parallel="pp", precision="bf16"),
    "tp checkpointed": Settings(parallel="tp", checkpointing=("Sequential",)),
    "pp checkpointed": Settings(parallel="pp", checkpointing=("0", "2")),
}


def work() -> Workload:
    """Made anew from one seed: 40 samples in batches of 8, so that a sixth step is a new epoch."""
    torch.manual_seed(3)
    model = nn.Sequential(
        *[nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(4)],
        nn.Linear(16, 4),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model(torch.randn(2, 16)).sum().backward()
    optimizer.step()  # so that there is state, which goes with the parameters
    optimizer.zero_grad()
    data = TensorDataset(torch.randn(40, 16), torch.randint(4, (40,)))
    made = Workload(model, data, loss=functional.cross_entropy, optimizer=optimizer, batch_size=8)
    torch.manual_seed(7)
    return made


def train(training: Any, count: int = STEPS) -> list[float | None]:
    losses = []
    for batch, _ in zip(training.batches(), range(count), strict=False):
        loss = training.step(batch)
        losses.append(None if loss is None else float(loss))
    return losses


def one_process(settings: Settings) -> tuple[list[float], dict[str, torch.Tensor]]:
    made = work()
    with prepare(made, settings, keep_training=True) as training:
        losses = train(training)
    assert all(loss is not None for loss in losses)
    return losses, dict(made.model.state_dict())  # type: ignore[return-value]


def every_mode(rank: Rank, payload: dict[str, Any]) -> dict[str, Any]:
    """What each mode gives in this rank: losses, and whole weights by name."""
    torch.set_num_threads(1)
    rank.join("gloo", 120)
    found = {}
    for name, settings in payload["settings"].items():
        made = payload["work"]()
        set_random_states(payload["random"])
        with spread(made, settings, rank) as training:
            losses = train(training)
            graphs = compile_counters().graphs
            found[name] = (losses, whole_weights(made.model), training.notes, graphs)
    return found


def whole_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {
        name: (value.full_tensor() if hasattr(value, "full_tensor") else value).detach().clone()
        for name, value in model.state_dict().items()
    }


@pytest.fixture(scope="module")
def ranks() -> tuple[Any, ...]:
    work()  # leaves the seed that the order of the data begins with
    return launch(
        every_mode,
        {"settings": SETTINGS, "work": work, "random": random_states()},
        world_size=2,
        time_limit_s=240,
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_losses_and_weights_are_those_of_one_process(ranks: tuple[Any, ...], name: str) -> None:
    settings = SETTINGS[name]
    plain = {k: v for k, v in settings.changes().items() if k != "parallel"}
    expected, weights = one_process(Settings(**plain))
    given = [rank[name][0] for rank in ranks]
    if name.startswith("pp"):
        losses = given[1]  # the last stage alone knows the loss
        assert given[0] == [None] * STEPS
    elif name.startswith("tp"):
        losses = given[0]
        assert given[1] == pytest.approx(losses, rel=1e-6)
    else:  # the mean of a batch is the mean of the means of its two halves
        losses = [(a + b) / 2 for a, b in zip(*given, strict=True)]
    if settings.precision == "bf16":  # one unit of its rounding is 2**-8
        exact, _ = one_process(Settings())
        assert losses == pytest.approx(expected, rel=2**-8)
        assert losses[0] != pytest.approx(exact[0], rel=1e-6), "autocast did not act"
        return
    # Sums in another order: a few units of fp32 rounding (6e-8), grown over five steps of AdamW.
    assert losses == pytest.approx(expected, rel=1e-4)
    for key, value in weights.items():
        # In a pipeline each rank trains the layers of its own stage, wherever it was cut.
        holders = [rank[name][1][key] for rank in (ranks if name.startswith("pp") else ranks[:1])]
        assert any(torch.allclose(held, value, rtol=1e-3, atol=1e-4) for held in holders), key


@pytest.mark.soak
def test_a_compiled_model_is_divided_and_computes_the_same() -> None:
    settings = Settings(parallel="tp", compile=True)
    work()
    payload = {"settings": {"tp": settings}, "work": work, "random": random_states()}
    found = launch(every_mode, payload, world_size=2, time_limit_s=600)
    expected, _ = one_process(Settings())
    assert found[0]["tp"][0] == pytest.approx(expected, rel=1e-4)
    assert found[0]["tp"][3] > 0, "torch compiled nothing"
