"""A Run stays the one that was meant when the current folder changes: ``%cd``, Hydra, a loop."""

import os
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import workbench as wb
from tests.profiling.loops import Trainer, loader, workload


@pytest.fixture
def elsewhere(place: Path) -> Path:
    """Another folder, in which a Run of the same name lies."""
    other = place / "elsewhere"
    other.mkdir()
    os.chdir(other)
    wb.profile(workload(), steps=2, name="mine", progress=False)
    os.chdir(place)
    return other


def test_a_loop_that_changes_the_folder_is_written_where_it_was_asked_for(
    place: Path, elsewhere: Path
) -> None:
    trainer = Trainer()
    with wb.capture("runs/loop", warmup=2, steps=3) as cap:
        for batch in cap.watch(loader(10)):
            trainer.train(batch)
            os.chdir(elsewhere)
            cap.step()
    assert cap.folder == Path("runs/loop")  # as it was named
    assert (place / "runs/loop/run.json").is_file()
    assert not (elsewhere / "runs/loop").exists()
    assert cap.run.steps is not None
    assert len(cap.run.steps) == 3


def test_a_step_that_changes_the_folder_is_written_where_it_was_asked_for(
    place: Path, elsewhere: Path
) -> None:
    def step(model: Any, batch: list[Tensor]) -> None:
        os.chdir(elsewhere)
        model(batch[0])

    run = wb.profile(workload(step=step), steps=2, name="walks", progress=False)
    assert (place / "runs/walks/run.json").is_file()
    assert run.findings is not None


def test_a_run_is_read_and_deleted_where_it_lies(place: Path, elsewhere: Path) -> None:
    profiled = wb.profile(workload(), steps=2, name="mine", progress=False)
    opened = wb.open(Path("runs/mine"))
    trace = wb.open("runs/mine/rank0.trace.json.gz")
    os.chdir(elsewhere)
    for run in (profiled, opened):
        assert run.findings is not None
        assert run.loader is not None
    assert trace.steps is not None
    assert profiled.to_tensorboard("boards").is_dir()
    profiled.delete()
    assert not (place / "runs/mine").exists()
    assert (elsewhere / "runs/mine/run.json").is_file()  # never the other one of that name


def test_a_list_of_runs_stays_that_of_its_folder(place: Path, elsewhere: Path) -> None:
    wb.profile(workload(), steps=2, name="mine", progress=False)
    wb.profile(workload(), steps=2, name="second", progress=False)
    listed = wb.runs()
    os.chdir(elsewhere)
    assert listed.names() == ["mine", "second"]
    assert listed["second"].steps is not None
    listed.delete("mine")
    assert (elsewhere / "runs/mine").is_dir()
    assert not (place / "runs/mine").exists()
