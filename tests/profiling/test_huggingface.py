"""The callback for Hugging Face's Trainer, with the real package."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import profiler
from torch.nn import functional

import workbench as wb
from tests.profiling.loops import workload
from tests.recording.traces import names, steps
from workbench.errors import ProfilerBusyError, RunError

# The Trainer itself warns: about pinned memory without a device, and parts of torch it still uses.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Classifier(nn.Module):
    """One linear layer that computes its own loss, and may fail at a call."""

    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.fail_at = fail_at
        self.calls = 0

    def forward(self, x: Any = None, labels: Any = None) -> dict[str, Any]:
        self.calls += 1
        if self.calls == self.fail_at:
            raise ValueError("loss is nan")
        logits = self.layer(x)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


@pytest.fixture(autouse=True)
def _data_folder_hidden() -> Iterator[None]:
    """Our folder ``datasets`` of data must not be taken for the package of that name."""
    root = Path(__file__).parents[2]
    before = list(sys.path)
    sys.path[:] = [entry for entry in before if Path(entry).resolve() != root]
    yield
    sys.path[:] = before


def train(model: nn.Module, callback: Any, **options: Any) -> None:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        "out",
        max_steps=16,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        per_device_train_batch_size=4,
        **options,
    )
    data = [{"x": torch.randn(4), "labels": torch.tensor(1)} for _ in range(200)]
    Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()


def test_a_training_becomes_a_run_whose_steps_are_optimizer_steps(place: Path) -> None:
    """Two micro-batches a step: twice as many forward passes as optimizer steps."""
    from workbench.profiling.huggingface import ProfileCallback

    callback = ProfileCallback("runs/hf", steps=5)
    train(Classifier(), callback, gradient_accumulation_steps=2)
    assert callback.run.folder == Path("runs/hf")
    trace = place / "runs/hf/rank0.trace.json.gz"
    assert len(steps(trace)) == 5
    assert names(trace).count("aten::linear") == 10


def test_a_training_that_failed_does_not_block_the_next_run(place: Path) -> None:
    """The Trainer never tells its callbacks that it failed: the next recording ends the capture."""
    from workbench.profiling.huggingface import ProfileCallback

    callback = ProfileCallback("runs/hf")
    with pytest.raises(ValueError, match="loss is nan"):
        train(Classifier(fail_at=7), callback)
    wb.profile(workload(), steps=2)
    assert len(steps(place / "runs/hf/rank0.trace.json.gz")) == 4
    assert any("closed later" in note for note in callback.run.notes)


def test_the_run_of_a_training_that_failed_is_there_at_once(place: Path) -> None:
    """Two steps of warm-up, and the seventh failed: four steps of the window are whole."""
    from workbench.profiling.huggingface import ProfileCallback

    callback = ProfileCallback("runs/hf")
    with pytest.raises(ValueError, match="loss is nan"):
        train(Classifier(fail_at=7), callback)
    assert callback.run.folder == Path("runs/hf")
    assert len(steps(place / "runs/hf/rank0.trace.json.gz")) == 4
    assert not profiler._is_profiler_enabled


def test_a_run_that_cannot_be_written_does_not_end_the_training(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes after ``train()`` saves the model: a full disk of ours must not prevent it."""
    from workbench.profiling.huggingface import ProfileCallback

    def full(*_: Any) -> Path:
        raise RunError("the disk is full")

    monkeypatch.setattr("workbench.profiling.writing.new_run_folder", full)
    callback, model = ProfileCallback("runs/hf"), Classifier()
    train(model, callback)
    assert model.calls == 16
    with pytest.raises(RunError, match="the disk is full"):
        _ = callback.run


def test_a_training_that_failed_stops_recording_when_its_cell_ends(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a notebook the profiler must not record whatever the next cells do."""
    from workbench.profiling.huggingface import ProfileCallback

    class Events:
        """What of IPython's events is used."""

        def __init__(self) -> None:
            self.callbacks: dict[str, list[Any]] = {"post_run_cell": []}

        def register(self, event: str, function: Any) -> None:
            self.callbacks[event].append(function)

        def unregister(self, event: str, function: Any) -> None:
            self.callbacks[event].remove(function)

    events = Events()
    shell = SimpleNamespace(events=events)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    callback = ProfileCallback("runs/hf")
    with pytest.raises(ValueError, match="loss is nan"):
        train(Classifier(fail_at=7), callback)
    assert profiler._is_profiler_enabled
    for function in list(events.callbacks["post_run_cell"]):
        function(None)
    assert not profiler._is_profiler_enabled
    assert events.callbacks["post_run_cell"] == []
    assert len(steps(place / "runs/hf/rank0.trace.json.gz")) == 4


def test_a_training_in_another_thread_is_not_cut_off(place: Path) -> None:
    """Ending its profiler from here would crash torch."""
    from workbench.profiling.huggingface import ProfileCallback

    callback = ProfileCallback("runs/hf")
    begun, refused = threading.Event(), threading.Event()

    def run() -> None:
        callback.on_train_begin(None, None, None)
        begun.set()
        refused.wait()
        for _ in range(4):
            callback.on_step_end(None, None, None)
        callback.on_train_end(None, None, None)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    with pytest.raises(ProfilerBusyError, match="another thread"):
        wb.profile(workload(), steps=2)
    refused.set()
    thread.join()
    assert len(steps(place / "runs/hf/rank0.trace.json.gz")) == 2
