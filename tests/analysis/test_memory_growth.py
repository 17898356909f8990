"""Who holds memory, what grows from step to step, and what fragments it."""

from pathlib import Path

import pytest
import torch

import workbench as wb
from tests.analysis.snapshots.made import MB, Made, frames
from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.memory.allocations import StepRanges
from workbench.analysis.memory.answer import DeviceMemory, answer
from workbench.analysis.memory.owners import owners_in_trace
from workbench.analysis.memory.recorded import recorded
from workbench.analysis.snapshots import read_snapshot
from workbench.analysis.snapshots.fragmentation import fragmentation
from workbench.analysis.snapshots.history import history
from workbench.analysis.snapshots.out_of_memory import post_mortems
from workbench.analysis.snapshots.owners import owners_in_snapshot
from workbench.errors import TraceError

pytestmark = pytest.mark.slow

MODEL = frames(
    ("project/model.py", 30, "forward"),
    ("/venv/site-packages/torch/nn/modules/module.py", 1790, "_call_impl"),
    ("project/train.py", 9, "<module>"),
)
LOG = frames(("deep/inside/project/train.py", 12, "log"))


def moved(made: Kineto, ts: float, size: int, address: int, total: int) -> None:
    """A ``[memory]`` instant of the first GPU."""
    args = {"Bytes": size, "Addr": address, "Device Type": 1, "Device Id": 0}
    args |= {"Total Allocated": total, "Total Reserved": 4000}
    made.events.append(
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100}
        | {"tid": 100, "ts": ts, "args": args}
    )


def of(made: Kineto, steps: int) -> DeviceMemory:
    trace = columns(made)
    found = recorded(trace)
    assert found is not None
    import numpy as np

    starts = np.arange(1, steps + 1) * 100_000
    ranges = StepRanges(
        start=starts, end=starts + 100_000, numbers=tuple(range(steps)), source="user"
    )
    owners = owners_in_trace(trace, found.allocations, None)
    return answer(found, owners, ranges)[0]


def test_the_parts_of_a_peak_sum_to_it_and_what_nobody_saw_begin_is_unknown() -> None:
    """500 were held before; an optimizer takes 200 that outlive it: 700 at the peak."""
    made = Kineto(gpu=True)
    made.range("warm", 0, 5)
    made.range("Optimizer.step#Adam.step", 100, 50)
    made.op("aten::zeros_like", 110, 10)
    moved(made, 112, 200, 8, 700)
    found = of(made, 1)
    assert (found.peak_bytes, found.before_bytes, found.reserved_bytes) == (700, 500, 4000)
    assert found.by_category is not None
    assert {name: size for name, size in found.by_category.items() if size} == {
        "optimizer": 200,
        "unknown": 500,
    }


def growing(each: list[int]) -> Kineto:
    """So many bytes are kept in each step, beside a batch that comes and goes."""
    made = Kineto(gpu=True)
    made.range("warm", 0, 5)
    live = 1000
    for number, kept in enumerate(each):
        at = 100 * (number + 1)
        moved(made, at + 1, 400, 1, live + 400)
        live += kept
        if kept:
            moved(made, at + 10, kept, 1000 + number, live + 400)
        moved(made, at + 90, -400, 1, live)
    return made


def test_a_leak_is_told_by_peaks_and_medians_that_both_rise() -> None:
    found = of(growing([64] * 8), 8)
    assert found.growth is not None
    assert found.growth.grows
    assert found.growth.bytes_per_step == 64
    assert found.growing is not None
    assert found.growing["bytes_per_step"].tolist() == [64.0]


@pytest.mark.parametrize("kept", [[0] * 8, [64, 64, 0, 0, 0, 0, 0, 0, 0], [64] * 4])
def test_a_cache_that_fills_or_too_few_steps_are_no_leak(kept: list[int]) -> None:
    found = of(growing(kept), len(kept))
    assert found.growth is None or not found.growth.grows


def test_the_line_of_a_planted_leak_on_the_cpu_is_found(tmp_path: Path) -> None:
    """Recorded for real: each step keeps 256 x 256 numbers of four bytes in a list."""
    kept = []

    def keep_history(size: int) -> None:
        kept.append(torch.ones(size, size))

    with torch.profiler.profile(profile_memory=True, with_stack=True) as profiler:
        for number in range(8):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                keep_history(256)
                torch.ones(64).sum()
    path = tmp_path / "leak.json"
    profiler.export_chrome_trace(str(path))
    run = wb.open(path)
    grows = run.rank().memory_devices[0].growth
    assert grows is not None
    assert grows.grows
    assert grows.bytes_per_step == 256 * 256 * 4
    assert run.memory_growth is not None
    worst = run.memory_growth.iloc[0]
    assert "keep_history" in worst["line"]
    assert worst["operator"] == "aten::ones"
    assert worst["bytes_per_step"] == 256 * 256 * 4


def planted() -> Made:
    """Ten segments of 20 MB, each pinned by one MB that a logger keeps; then 50 MB are asked."""
    made = Made()
    for number in range(10):
        at = 1_000_000_000 * (number + 1)
        made.act("segment_alloc", at, 20 * MB, number)
        made.alloc(at, MB, number, LOG)
        made.segment(at, 20 * MB, (MB, True, LOG), (19 * MB, False, None))
    made.act("oom", 0, 50 * MB, 90, MODEL, device_free=2 * MB)
    return made


def test_a_planted_fragmentation_is_found_with_its_line() -> None:
    """10 of 200 MB are live; 190 MB are free in pieces of 19, and none serves 50."""
    snapshot = read_snapshot(planted().data())
    found = fragmentation(snapshot, 0)
    assert (found.reserved_bytes, found.live_bytes) == (200 * MB, 10 * MB)
    assert found.pinned_bytes == 190 * MB
    assert found.largest_free_bytes == 19 * MB
    assert found.share == 0.95
    assert found.pins["line"][0] == "project/train.py(12): log"
    history_, stacks = history(snapshot)
    (failed,) = post_mortems(snapshot, history_, owners_in_snapshot(snapshot, history_, stacks))
    assert failed.fragmented
    assert (failed.live_bytes, failed.unused_bytes) == (10 * MB, 190 * MB)
    assert failed.line == "project/model.py(30): forward"
    assert any("expandable_segments" in each.what for each in failed.remedies)


def test_a_history_that_begins_in_the_middle_is_led_back_from_its_end() -> None:
    """3 MB live at the end, 1 given back before it, 2 taken: 1 was held first, at most 3."""
    made = Made()
    made.free(5 * MB, MB, 10)
    made.alloc(8 * MB, 2 * MB, 20, MODEL)
    made.segment(8 * MB, 20 * MB, (2 * MB, True, MODEL), (MB, True, None), (17 * MB, False, None))
    found, _ = history(read_snapshot(made.data()))
    assert (found.live[0].value // MB).tolist() == [1, 3]
    assert found.live[0].peak[0] == 3 * MB


def test_a_snapshot_opens_as_a_run_and_other_pickles_stay_refused(tmp_path: Path) -> None:
    run = wb.open(planted().write(tmp_path / "snapshot.pickle"))
    assert "GPU 0 holds 10.5 MB at most" in repr(run)
    assert run.summary["ranks"][0]["memory"]["peak_bytes"] == 10 * MB
    assert run.out_of_memory is not None
    assert run.out_of_memory["requested_bytes"].tolist() == [50 * MB]
    assert run.kernels is None
    assert run.memory is not None
    assert run.memory["peak_bytes"].tolist() == [10 * MB]
    assert "memory" not in run.summary.not_measured
    assert "memory alone" in run.summary.not_measured["kernels"]
    assert "not measured" not in "\n".join(repr(run.summary).splitlines()[:1])
    assert "steps" not in repr(run), "a snapshot has none, which is no fault of it"
    other = tmp_path / "other.pickle"
    other.write_bytes(b"\x80\x02cos\nsystem\n.")
    with pytest.raises(TraceError, match="nothing in the file was run"):
        wb.open(other)
