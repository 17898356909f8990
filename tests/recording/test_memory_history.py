"""The history of device memory: bounded, for the profiled steps alone, and put back afterwards."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from tests.analysis.snapshots.made import MB, Made, frames
from workbench.analysis.snapshots import read_snapshot
from workbench.profiling.memory import what_held
from workbench.recording.memory_history import MOST_ENTRIES, MemoryHistory, memory_history
from workbench.recording.window import Window
from workbench.settings import Record, Settings

MODEL = frames(
    ("project/model.py", 30, "forward"),
    ("/venv/site-packages/torch/nn/modules/module.py", 1790, "_call_impl"),
)


class Allocator:
    """What torch.cuda.memory does on a GPU: one history at a time."""

    def __init__(self, document: dict[str, Any], *, on: bool = False) -> None:
        self.document = document
        self.on = on
        self.calls: list[tuple[Any, dict[str, Any]]] = []

    def enabled(self) -> bool:
        return self.on

    def _record_memory_history(self, enabled: Any, **options: Any) -> None:
        self.calls.append((enabled, options))
        self.on = enabled is not None

    def _snapshot(self) -> dict[str, Any]:
        return self.document


def used() -> Made:
    """Two megabytes that a model's forward holds, and a request for 50 that failed."""
    made = Made()
    made.act("segment_alloc", 4096, 20 * MB, 1)
    made.alloc(4096, 2 * MB, 2, MODEL)
    made.segment(4096, 20 * MB, (2 * MB, True, MODEL), (18 * MB, False, None))
    made.act("oom", 0, 50 * MB, 3, MODEL, device_free=MB)
    return made


def test_ours_is_bounded_and_ended() -> None:
    allocator = Allocator(used().document())
    history = MemoryHistory(allocator, allocator.enabled)
    history.start()
    assert allocator.on
    history.stop()
    history.stop()
    (first, options), last = allocator.calls
    assert (first, options["max_entries"], last[0]) == ("all", MOST_ENTRIES, None)
    assert not allocator.on
    assert history.data is not None
    assert len(read_snapshot(history.data)) == 3


def test_one_of_the_users_goes_on_untouched() -> None:
    allocator = Allocator(used().document(), on=True)
    history = MemoryHistory(allocator, allocator.enabled)
    history.start()
    history.stop()
    assert allocator.calls == []
    assert allocator.on
    assert history.data is not None


def test_another_torch_is_said_and_stops_nothing() -> None:
    class Older(Allocator):
        def _record_memory_history(self, enabled: Any, **options: Any) -> None:
            raise TypeError("unexpected keyword argument 'stacks'")

    allocator = Older({})
    history = MemoryHistory(allocator, allocator.enabled)
    history.start()
    history.stop()
    assert history.data is None
    assert "was not recorded" in history.messages[0]


def test_ours_ends_with_an_error_and_the_error_carries_what_was_seen() -> None:
    """The failed request met 2 MB held by one line: 2.1 million bytes."""
    allocator = Allocator(used().document())
    history = MemoryHistory(allocator, allocator.enabled)
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 50.00 MiB.")

    def recorded() -> None:
        try:
            history.start()
            raise error
        finally:
            history.stop()

    with pytest.raises(torch.OutOfMemoryError):
        recorded()
    assert not allocator.on
    model = nn.Linear(4, 4)
    work = wb.Workload(model, [torch.ones(1, 4)])
    said = what_held(error, work, Settings()).replace("\u2009", " ")
    assert "2.10 MB project/model.py(30): forward (activations)" in said
    assert not vars(error), "nothing large stays with the error"


def test_a_recording_writes_it_beside_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocator = Allocator(used().document())

    def faked(wanted: bool, device_type: str | None) -> MemoryHistory:
        return MemoryHistory(allocator if wanted else None, allocator.enabled)

    monkeypatch.setattr("workbench.recording.window.memory_history", faked)
    work = wb.Workload(nn.Linear(4, 4), [torch.ones(2, 4)] * 4)
    run = wb.profile(
        work, steps=2, record=Record(memory=True), folder=tmp_path, name="a", progress=False
    )
    assert not allocator.on
    inner = run.memory_snapshot
    assert inner is not None
    assert inner.memory_holders is not None
    assert "model.py(30)" in inner.memory_holders["line"][0]
    assert inner.out_of_memory is not None
    assert wb.open(tmp_path / "a").memory_snapshot is not None
    plain = wb.profile(work, steps=2, folder=tmp_path, name="b", progress=False)
    assert plain.memory_snapshot is None
    assert "Record(memory=True)" in plain.summary.not_measured["memory_snapshot"]


def test_processors_have_none() -> None:
    history = memory_history(True, "cpu")
    history.start()
    history.stop()
    assert history.data is None
    assert Window(Record(memory=True), None)._history.data is None


@pytest.mark.gpu
def test_a_real_history_names_the_line_that_took_memory(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("the caching allocator's history is CUDA's and ROCm's")
    model = nn.Linear(1024, 1024, device="cuda")

    def step(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return model(batch.cuda()).square().mean()  # type: ignore[no-any-return]

    work = wb.Workload(model, [torch.ones(64, 1024)] * 8, step=step)
    run = wb.profile(work, steps=3, record=Record(memory=True), folder=tmp_path, progress=False)
    assert not torch._C._cuda_isHistoryEnabled()
    inner = run.memory_snapshot
    assert inner is not None
    assert inner.memory_holders is not None
    assert any("test_memory_history.py" in line for line in inner.memory_holders["line"])
