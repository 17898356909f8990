"""One call profiles a workload in two ranks: one Run, and nothing of the user's is changed."""

import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import workbench as wb
from workbench.parallel.job import PREFIX
from workbench.settings import Parallel

pytestmark = pytest.mark.slow

LATE_S = 0.03


class Slow(nn.Module):
    """A layer of which rank 1 makes a straggler: it sleeps in every forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(32, 32)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if os.environ.get("RANK") == "1":
            time.sleep(LATE_S)
        return self.inner(inputs)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("runs")
    torch.manual_seed(1)
    model = nn.Sequential(Slow(), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = TensorDataset(torch.randn(64, 32), torch.randint(4, (64,)))
    loader = DataLoader(data, 8, shuffle=True, num_workers=1, generator=torch.Generator())
    work = wb.Workload(model, loader, loss=functional.cross_entropy, optimizer=optimizer)
    before = state(work, loader)
    children = set(psutil.Process().children(recursive=True))
    parallel = Parallel(mode="ddp", world_size=2, bucket_mb=1.0)
    ranks = wb.profile(work, wb.Settings(parallel=parallel), steps=4, folder=folder)
    left = set(psutil.Process().children(recursive=True)) - children
    after = state(work, loader)
    alone = wb.profile(work, steps=4, folder=folder)
    return {"ranks": ranks, "alone": alone, "before": before, "after": after, "left": left}


def state(work: wb.Workload, loader: DataLoader[Any]) -> list[Any]:
    weights = [p.detach().clone() for p in work.model.state_dict().values()]
    random = [torch.get_rng_state(), loader.generator.get_state()]  # type: ignore[union-attr]
    return [*weights, *random, len(work.optimizers[0].state)]


def test_the_user_keeps_everything_and_no_process_is_left(made: dict[str, Any]) -> None:
    for one, other in zip(made["before"], made["after"], strict=True):
        same = torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
        assert same
    assert not made["left"]
    assert not list(Path("/tmp").glob(f"{PREFIX}{os.getpid()}-*"))
    assert not torch.distributed.is_initialized()


def test_one_run_holds_the_traces_of_both_ranks(made: dict[str, Any]) -> None:
    run = made["ranks"]
    assert run.record.traces == ["rank0.trace.json.gz", "rank1.trace.json.gz"]
    assert len(run.ranks) == 2
    assert run.record.settings["parallel"] == {"mode": "ddp", "world_size": 2, "bucket_mb": 1.0}
    effective = run.record.effective
    assert (effective["world_size"], effective["backend"]) == (2, "gloo")
    assert set(run.communication["rank"]) == {0, 1}
    # Gradients are reduced; the buffers of batch norm come from rank 0.
    assert set(run.communication["collective"]) == {"all_reduce", "broadcast"}
    assert run.record.loader is not None, "the loader's probes look in rank 0"


def test_the_global_batch_is_that_of_one_process(made: dict[str, Any]) -> None:
    ranks, alone = made["ranks"].record, made["alone"].record
    assert ranks.samples_per_step == alone.samples_per_step == 8
    assert ranks.effective["batch_size"] == alone.effective["batch_size"] == 8
    assert ranks.effective["batch_per_rank"] == 4
    text = str(wb.compare(made["alone"], made["ranks"]))
    assert "parallel" in text


def test_ddps_own_numbers_stand_beside_the_trace(made: dict[str, Any]) -> None:
    """One bucket of 1 MiB holds all: (32·32 + 32 + 32 + 32 + 32·4 + 4) × 4 bytes = 5,008."""
    told = made["ranks"].record.effective["ddp_logging"]
    assert told["bucket_sizes"] == "5008"
    assert told["avg_backward_comm_time"] > 0


def test_the_caveat_of_batch_norm_is_said(made: dict[str, Any]) -> None:
    assert any("batch norm takes its mean" in note for note in made["ranks"].record.notes)


def test_the_late_rank_is_named_with_its_phase(made: dict[str, Any]) -> None:
    """Rank 1 sleeps 30 ms of every step, which rank 0 waits for in its all_reduce."""
    found = made["ranks"].job.straggler
    assert found is not None
    assert found.rank == 1
    assert found.phase == "forward"
    (said,) = [each for each in made["ranks"].findings if each.code == "WB402"]
    assert said.verdict == "yes"
    assert said.evidence["phase"] == "forward"
    assert "rank 1" in f"{said.title} {said.advice}".lower()
