"""Traces that torch records here and now, of loops whose times are known by construction."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

from tests.analysis.traces import MS
from workbench.analysis.host import host_breakdown
from workbench.analysis.input_wait import InputWait, input_wait
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import Steps, find_steps
from workbench.analysis.trust import check_trust
from workbench.analysis.window import window
from workbench.trace import read

SAMPLE_MS, BATCH, STEPS = 5, 4, 4
FETCH_NS = SAMPLE_MS * BATCH * STEPS * MS
"""What the recorded steps must at least spend fetching, in one process."""


class Sleeping(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Every sample takes a known time."""

    def __len__(self) -> int:
        return BATCH * 6

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(SAMPLE_MS / 1000)
        return torch.full((64,), float(index)), torch.tensor(index % 10)


@dataclass(frozen=True)
class Measured:
    """What the analyses say of one recording."""

    steps: Steps | None
    parts: dict[str, int | None]
    input: InputWait | None
    ok: bool


def measure(path: Path) -> Measured:
    trace = read(path)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    held = window(trace, None, steps, launches)
    assert held is not None
    parts = host_breakdown(trace, held, steps)
    assert sum(part or 0 for part in parts.values()) == held.length
    ok = check_trust(trace, launches, steps).ok
    return Measured(steps, parts, input_wait(trace, held, steps), ok)


def train(
    path: Path,
    *,
    workers: int = 0,
    adam: bool = False,
    stack: bool = False,
    pause: float = 0.0,
    ranges: bool = False,
    active: int = STEPS,
) -> Measured:
    """Six batches, the first a warm-up of the profiler; then read what it wrote."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    make = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = make(model.parameters(), lr=0.01)
    plan = schedule(wait=0, warmup=1, active=active, repeat=1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=plan,
        with_stack=stack,
        record_shapes=True,
        acc_events=True,
        on_trace_ready=lambda made: made.export_chrome_trace(str(path)),
    ) as profiler:
        for batch, target in DataLoader(Sleeping(), batch_size=BATCH, num_workers=workers):
            time.sleep(pause)
            optimizer.zero_grad()
            with record_function("forward" if ranges else "mine"):
                time.sleep(0.01 if ranges else 0)
                loss = torch.nn.functional.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            profiler.step()
    return measure(path)


@pytest.fixture(autouse=True)
def _alone(one_thread: None) -> None:
    pass


@pytest.mark.parametrize("adam", [False, True], ids=["SGD", "Adam"])
@pytest.mark.parametrize("stack", [False, True], ids=["plain", "stacks"])
def test_a_slow_dataset_shows_as_input(tmp_path: Path, adam: bool, stack: bool) -> None:
    found = train(tmp_path / "t.json", adam=adam, stack=stack)
    assert found.ok
    assert found.steps is not None
    assert found.steps.numbers == (1, 2, 3, 4)
    assert found.input is not None
    assert found.input.batches == STEPS
    assert found.input.wait_ns >= FETCH_NS
    assert found.parts["input"] == found.input.wait_ns
    for part in ("optimizer", "backward", "forward"):
        assert (found.parts[part] or 0) > 0, part
    assert (found.parts["host_python"] is not None) == stack


def test_with_workers_the_wait_is_what_the_loop_waits(tmp_path: Path) -> None:
    """Two workers halve the time; that of their own work is not in the trace."""
    found = train(tmp_path / "t.json", workers=2)
    assert found.input is not None
    assert found.input.batches == STEPS
    assert found.parts["input"] == found.input.wait_ns


def test_sleeping_in_the_loop_is_host_time_and_in_forward_forward(tmp_path: Path) -> None:
    outside = train(tmp_path / "outside.json", pause=0.02)
    assert (outside.parts["host_other"] or 0) >= STEPS * 20 * MS
    inside = train(tmp_path / "inside.json", ranges=True)
    assert (inside.parts["forward"] or 0) >= STEPS * 10 * MS
    assert (inside.parts["host_other"] or 0) < STEPS * 10 * MS


def test_a_loop_that_ends_inside_the_window_leaves_a_torso(tmp_path: Path) -> None:
    """Six batches, one of them warm-up: five whole steps, and the range of a sixth."""
    found = train(tmp_path / "t.json", active=20)
    assert found.steps is not None
    assert (found.steps.numbers, found.steps.dropped) == ((1, 2, 3, 4, 5), 1)
    assert found.input is not None
    assert found.input.batches == 5
    assert found.ok


def test_without_a_schedule_seven_calls_are_six_batches(tmp_path: Path) -> None:
    layer = torch.nn.Linear(64, 10)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for batch, target in DataLoader(Sleeping(), batch_size=BATCH):
            torch.nn.functional.cross_entropy(layer(batch), target).backward()
    profiler.export_chrome_trace(str(tmp_path / "t.json"))
    found = measure(tmp_path / "t.json")
    assert found.steps is None
    assert found.input is not None
    assert len(found.input.waits.start) == 7
    assert found.input.batches == 6
