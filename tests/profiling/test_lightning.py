"""The Lightning callback, with the real package under both of its names."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.profiling.loops import loader
from tests.recording.traces import names, steps
from workbench.errors import RunError

# Lightning itself warns: about torch's deprecated parts, few workers, and the logger that is off.
pytestmark = pytest.mark.filterwarnings("ignore")

OPTIONS = {
    "max_epochs": 2,
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def module(lightning: Any, fail_at: int | None = None) -> Any:
    class Linear(lightning.LightningModule):  # type: ignore[misc]
        """One linear layer."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def training_step(self, batch: Any, number: int) -> torch.Tensor:
            if number == fail_at:
                raise ValueError("loss is nan")
            loss: torch.Tensor = self.layer(batch[0]).sum()
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Linear()


def test_a_fit_becomes_a_run_over_epochs(place: Path) -> None:
    """Two epochs of 10 batches: 2 warm-up, 10 profiled, 8 after them of which the first is cut."""
    lightning = importlib.import_module("lightning.pytorch")
    from workbench.profiling.lightning import ProfileCallback

    callback = ProfileCallback("runs/fit")
    lightning.Trainer(**OPTIONS, callbacks=[callback]).fit(module(lightning), loader(10))
    run = callback.run
    assert run.folder == Path("runs/fit")
    trace = place / "runs/fit/rank0.trace.json.gz"
    assert len(steps(trace)) == 10
    assert names(trace).count("Optimizer.step#SGD.step") == 10
    assert run.record is not None
    assert run.record.timings is not None
    assert len(run.record.timings.step_ns) == 7


def test_a_fit_that_fails_keeps_what_is_whole_and_the_next_fit_works(place: Path) -> None:
    lightning = importlib.import_module("lightning.pytorch")
    from workbench.profiling.lightning import ProfileCallback

    callback = ProfileCallback("runs/fit")
    trainer = lightning.Trainer(**OPTIONS, callbacks=[callback])
    with pytest.raises(ValueError, match="loss is nan"):
        trainer.fit(module(lightning, fail_at=6), loader(10))
    assert len(steps(place / "runs/fit/rank0.trace.json.gz")) == 4
    lightning.Trainer(**OPTIONS, callbacks=[callback]).fit(module(lightning), loader(10))
    assert callback.run.folder == Path("runs/fit-2")


def test_of_two_callbacks_the_later_one_records_and_the_fit_goes_on(place: Path) -> None:
    lightning = importlib.import_module("lightning.pytorch")
    from workbench.profiling.lightning import ProfileCallback

    first, second = ProfileCallback("runs/first"), ProfileCallback("runs/second")
    trainer = lightning.Trainer(**OPTIONS, callbacks=[first, second])
    trainer.fit(module(lightning), loader(10))
    assert trainer.global_step == 20
    assert len(steps(place / "runs/second/rank0.trace.json.gz")) == 10
    with pytest.raises(RunError, match="nothing was captured"):
        _ = first.run


@pytest.mark.slow
def test_the_older_name_of_the_package_works_too(place: Path) -> None:
    """A fresh process: which name is in use is decided by what was imported first."""
    script = f"""
import torch, pytorch_lightning
from workbench.profiling.lightning import ProfileCallback
assert issubclass(ProfileCallback, pytorch_lightning.Callback)
class Linear(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, number):
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(40, 4))
callback = ProfileCallback("runs/old", steps=2)
loader = torch.utils.data.DataLoader(data, batch_size=4)
pytorch_lightning.Trainer(**{OPTIONS!r}, callbacks=[callback]).fit(Linear(), loader)
"""
    root = str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        check=True,
        cwd=place,
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin", "HOME": str(place)},
        capture_output=True,
    )
    assert len(steps(place / "runs/old/rank0.trace.json.gz")) == 2
