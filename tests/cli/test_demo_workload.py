"""Is the demo's bottleneck planted where the demo says it is?"""

import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from workbench.cli.demo_workload import BATCH_SIZE, demo_workload
from workbench.datasets import images
from workbench.workload import Workload


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workload:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    return demo_workload(images(count=180, progress=False) / "train")


def train_step(work: Workload, batch: list[torch.Tensor]) -> None:
    inputs, labels = batch
    loss = work.loss(work.model(inputs), labels)  # type: ignore[misc]
    loss.backward()
    work.optimizers[0].step()
    work.optimizers[0].zero_grad()


@pytest.mark.usefixtures("one_thread")
def test_the_input_takes_most_of_a_step(demo: Workload):
    # In processor seconds of this thread, which other load on the machine does not change.
    batches = iter(DataLoader(demo.data, BATCH_SIZE))
    train_step(demo, next(batches))
    shares = []
    for _ in range(3):
        start = time.thread_time()
        batch = next(batches)
        fetched = time.thread_time()
        train_step(demo, batch)
        shares.append((fetched - start) / (time.thread_time() - start))
    assert sorted(shares)[1] > 0.6


def test_each_demo_starts_from_the_same_weights_and_leaves_the_random_state(demo: Workload):
    before = torch.get_rng_state()
    again = demo_workload(Path(demo.data.files[0]).parents[1])
    assert torch.equal(torch.get_rng_state(), before)
    for one, other in zip(demo.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_workers_that_import_everything_anew_give_the_same_batch(demo: Workload):
    (first, *_) = DataLoader(demo.data, 4)
    spawned = DataLoader(demo.data, 4, num_workers=1, multiprocessing_context="spawn")
    batches = iter(spawned)
    assert torch.equal(next(batches)[0], first[0])
    del batches
