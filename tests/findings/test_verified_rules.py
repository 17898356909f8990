"""``wb.verify`` of findings about workers, threads, the optimizer and compilation.

Each cause is planted, so that what its switch can gain follows from arithmetic.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import workbench as wb
from tests.findings.facts import MS, found, stages, waiting
from tests.findings.loading import Working
from tests.findings.loops import fired
from workbench.findings import Finding
from workbench.tuning.verification import Verification
from workbench.workload import compilation

pytestmark = pytest.mark.slow


def rather_slowly(worker: int) -> None:
    """As a worker that imports something."""
    time.sleep(0.1)


def loading(loader: DataLoader[Any], step_s: float = 0.0) -> wb.Workload:
    """A step that sleeps, as a host that waits for a device."""
    model = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)

    def step(model: nn.Module, batch: Any) -> Any:
        time.sleep(step_s)
        optimizer.zero_grad()
        loss = model(batch.float()).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return wb.Workload(model, loader, step=step, optimizer=optimizer, name="loop")


def verified(
    work: wb.Workload, code: str, folder: Path, *, steps: int = 6, **settings: Any
) -> tuple[Finding, Verification]:
    """The finding of a profile of the loop, and what its switch was measured to do."""
    base = wb.Settings(**settings)
    run = wb.profile(work, base, steps=12, folder=folder, progress=False)
    finding = fired(run, code)
    return finding, verify(work, finding, folder, steps=steps)


def verify(work: wb.Workload, finding: Finding, folder: Path, *, steps: int = 6) -> Verification:
    """Four short blocks of each side, and no profile."""
    return wb.verify(
        work, finding, steps=steps, blocks=4, record=None, folder=folder, progress=False
    )


def test_wb104_workers_that_live_on_save_their_start_and_no_more(
    tmp_path: Path, one_thread: None
) -> None:
    """100 ms to start, then 6 steps of 20 ms: 220 ms an epoch, of which 120 are left."""
    loader = DataLoader(Working(count=24), 4, num_workers=1, worker_init_fn=rather_slowly)
    finding, answer = verified(loading(loader, 0.02), "WB104", tmp_path)
    assert finding.setting == {"persistent_workers": True}
    assert answer.trials[0].effective["persistent_workers"] is False
    assert answer.trials[1].effective["persistent_workers"] is True
    assert {len(block.step_ns) % 6 for block in answer.fair.trials[0].blocks} == {0}
    assert answer.change.verdict == "faster", answer
    assert answer.change.ratio < 0.7
    assert answer.bound is not None
    assert answer.bound.held is True, answer


def test_wb105_as_many_workers_as_a_step_needs_gain_what_it_waits(
    tmp_path: Path, one_thread: None
) -> None:
    """2 samples of 30 ms in a step of 30: one worker brings a batch in 60, two in 30."""
    loader = DataLoader(Working(sleep=0.03), 2, num_workers=1)
    finding, answer = verified(loading(loader, 0.03), "WB105", tmp_path)
    assert (finding.setting or {})["workers"] in {2, 3}
    assert answer.trials[1].effective["workers"] == (finding.setting or {})["workers"]
    assert answer.change.verdict == "faster", answer
    assert answer.bound is not None
    assert answer.bound.held is True, answer


def test_wb205_the_optimizer_in_one_call_gains_no_more_than_it_takes(
    tmp_path: Path, one_thread: None
) -> None:
    """Adam over 80 small tensors, one by one: twelve operators each."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(40)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    data = DataLoader(Working(numbers=4), 4)

    def step(model: nn.Module, batch: Any) -> Any:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    work = wb.Workload(model, data, step=step, optimizer=optimizer, name="tiny")
    finding, answer = verified(work, "WB205", tmp_path)
    assert finding.setting == {"optimizer": "fused"}
    assert answer.trials[0].effective["optimizer"] == "single"
    assert answer.trials[1].effective["optimizer"] == "fused"
    assert answer.change.ratio < 0.9
    assert answer.bound is not None
    assert answer.bound.held is True, answer


class InEachOthersWay(Working):
    """Samples that take 10 ms for each thread of their worker: a stand-in for pools that spin."""

    def __getitem__(self, index: int) -> Tensor:
        time.sleep(0.01 * torch.get_num_threads())
        return super().__getitem__(index)


def with_four_threads(worker: int) -> None:
    """As a library that sizes its pool to all cores."""
    torch.set_num_threads(4)


def test_wb106_one_thread_a_worker_is_really_set_and_keeps_to_the_bound(
    tmp_path: Path, one_thread: None
) -> None:
    """4 threads: 40 ms a batch of one sample, and a step of nothing; one thread: 10 ms.

    The finding is written by hand: 30 ms computing, 10 ready without a processor.
    """
    made = stages(
        batch_ns=40.0 * MS, fetch_ns=400 * MS, samples_ns=400 * MS, collate_ns=0,
        fetch_cpu_ns=300 * MS, run_delay_ns=100 * MS, active_threads=4.0,
    )  # fmt: skip
    system = {"usable_cpus": 2, "workers": 1, "threads_per_worker": 6, "system_share": 0.2}
    split = {"oversubscription": 10, "decode": 30}
    facts = waiting(
        40,
        39,
        loader_stages=made,
        loader_system=system,
        stalls_ns=split,
        effective={"workers": 1},
        usable=2,
    )
    finding = found(facts, "WB106")
    assert finding is not None
    assert finding.setting == {"worker_threads": 1}
    loader = DataLoader(InEachOthersWay(), 1, num_workers=1, worker_init_fn=with_four_threads)
    answer = verify(loading(loader), finding, tmp_path)
    assert answer.trials[1].effective["worker_threads"] == 1
    assert answer.change.ratio == pytest.approx(0.25, abs=0.15)
    assert answer.bound is not None
    assert answer.bound.held is True, answer


class Resized(nn.Module):
    """A linear layer on batches whose length differs from step to step."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 2)

    def forward(self, batch: Tensor) -> Tensor:
        answer: Tensor = self.layer(batch).relu()
        return answer


def test_wb207_compiling_for_every_size_is_compared_with_the_run_that_compiled(
    tmp_path: Path, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six lengths of batch, each compiled anew; the finding's Run was compiled, so is the base.

    Compiled code stays, so that blocks meet no new length, and the gain is next to nothing.
    """
    monkeypatch.setattr(compilation.torch, "compile", partial(torch.compile, backend="eager"))
    data = [torch.randn(length, 5) for length in (2, 3, 4, 5, 6, 7)] * 8
    model = Resized()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)

    def step(model: nn.Module, batch: Any) -> Any:
        time.sleep(0.02)
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    work = wb.Workload(model, data, step=step, optimizer=optimizer, name="sizes")
    static: dict[str, Any] = {"compile": True, "compile_dynamic": False}
    finding, answer = verified(work, "WB207", tmp_path, **static)
    assert finding.setting == {"compile": True, "compile_dynamic": True}
    assert answer.base == wb.Settings(**static)
    assert answer.elsewhere == ()
    assert [side.effective["compile_dynamic"] for side in answer.trials] == [False, True]
    assert finding.evidence["recompiles"] >= 4
    assert "forward (test_verified_rules.py:" in finding.title
    assert "size mismatch" in finding.title
    assert (answer.trials[1].compilation or {}).get("recompiles", 0) <= 1
    assert answer.bound is None or answer.bound.held is not False
