"""Which lanes a trace becomes, and what stands in them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from tests.kineto import Kineto
from tests.pages.timeline import loop
from tests.pages.timeline.loop import US
from workbench.errors import RunError
from workbench.pages.timeline.beside import loader_tracks, thinned
from workbench.pages.timeline.headline import headline
from workbench.pages.timeline.host import thread_tracks
from workbench.pages.timeline.labels import CODE, NAMES, Labels, category_of
from workbench.pages.timeline.scene import Scene, Track, track
from workbench.run.run import Run
from workbench.run.timeline import scene_of
from workbench.trace import read
from workbench.trace.table import Kind


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return loop.run(tmp_path)


@pytest.fixture
def scene(run: Run) -> Scene:
    return scene_of(run)


def lane(scene: Scene, kind: str) -> Track:
    return next(track for track in scene.tracks if track.kind == kind)


def names(scene: Scene, track: Track) -> list[str]:
    pairs = scene.labels.pairs()
    return [pairs[code][0] for code in track.label.tolist()]


def categories(scene: Scene, track: Track) -> list[str]:
    pairs = scene.labels.pairs()
    return [NAMES[pairs[code][1]] for code in track.label.tolist()]


def test_lanes_in_the_order_in_which_people_look(scene: Scene):
    assert [(track.kind, track.group) for track in scene.tracks] == [
        ("steps", ""),
        ("idle", "GPU 0 (NVIDIA A100-SXM4-40GB)"),
        ("stream", "GPU 0 (NVIDIA A100-SXM4-40GB)"),
        ("stream", "GPU 0 (NVIDIA A100-SXM4-40GB)"),
        ("thread", "Host"),
    ]
    assert names(scene, lane(scene, "steps")) == ["step 0", "step 1"]


def test_what_is_nested_gets_a_row_below(scene: Scene):
    thread = lane(scene, "thread")
    # loader and linear side by side, addmm inside linear, the launch inside addmm; twice
    expected = [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, "input"),
        ("aten::linear", 0, "host_operators"),
        ("aten::addmm", 1, "host_operators"),
        ("cudaLaunchKernel", 2, "launch"),
    ]
    found = zip(names(scene, thread), thread.depth.tolist(), categories(scene, thread), strict=True)
    assert sorted(found) == sorted(expected * 2)


def test_no_two_events_of_a_row_overlap():
    made = Kineto(gpu=True)
    rng = np.random.default_rng(3)
    for number in range(300):  # ranges that cross each other, as asynchronous ones do
        at, dur = rng.integers(0, 5000), rng.integers(1, 400)
        made.range(f"range {number % 7}", float(at), float(dur))
    trace = read(json.dumps(made.document()).encode())
    (track,) = thread_tracks(trace, None, Labels(), group="Host", rank=0, move=0)
    assert len(track) == 300
    for depth in range(int(track.depth.max()) + 1):
        row = track.depth == depth
        start, end = track.start[row], (track.start + track.dur)[row]
        assert (start[1:] >= end[:-1]).all()


def test_idle_gaps_have_their_cause_their_work_and_their_record(scene: Scene, run: Run):
    idle = lane(scene, "idle")
    # Between the kernels: 960 to 1460 µs. Input while the loader waits, 1010 to 1410.
    by_cause = dict.fromkeys(categories(scene, idle), 0)
    for cause, dur in zip(categories(scene, idle), idle.dur.tolist(), strict=True):
        by_cause[cause] += dur
    assert by_cause["input"] == 400 * US
    first = int(np.flatnonzero([c == "input" for c in categories(scene, idle)])[0])
    assert idle.start[first] == 1010 * US
    events, trace = run.trace.events, run.trace
    assert trace.names[events.name[idle.link[first]]] == "sgemm_128x64"
    assert "DataLoader" in trace.names[events.name[idle.of[first]]]


def test_idle_and_work_fill_the_recording_exactly(scene: Scene):
    idle = lane(scene, "idle")
    work = sum(int(t.dur.sum()) for t in scene.tracks if t.kind == "stream")
    # one kernel after the other, 460 to 1990 µs
    assert int(idle.dur.sum()) + work == (1990 - 460) * US


def test_a_kernel_leads_to_its_launch(scene: Scene, run: Run):
    stream = lane(scene, "stream")
    trace = run.trace
    assert names(scene, stream) == ["sgemm_128x64"] * 2
    assert [trace.names[trace.events.name[row]] for row in stream.link] == ["cudaLaunchKernel"] * 2


def test_a_cpu_trace_has_the_loops_parts_instead_of_a_device(tmp_path: Path):
    made = Kineto()
    for number in range(3):
        made.step(number, number * 100.0, 100)
        made.loader(number * 100 + 5, 40)
        made.op("aten::mm", number * 100 + 50, 45)
    scene = scene_of(wb.open(made.write(tmp_path / "cpu.json")))
    parts = lane(scene, "loop")
    by = dict.fromkeys(categories(scene, parts), 0)
    for part, dur in zip(categories(scene, parts), parts.dur.tolist(), strict=True):
        by[part] += dur
    assert by["input"] == 120 * US
    assert sum(by.values()) == 300 * US  # each instant of the steps once
    assert "spends 45 % of its steps" in headline(scene)  # 3 × 45 of 300 µs in the operator


def test_ranks_stand_on_one_clock(tmp_path: Path):
    folder = tmp_path / "job"
    folder.mkdir()
    base = 1_700_000_000_000_000_000
    for rank, late in enumerate((0, 5_000_000)):
        made = Kineto(base_ns=base + late)
        made.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "gloo"}
        for number in range(2):
            made.step(number, number * 100.0, 100)
            made.op("aten::mm", number * 100 + 5, 50)
            made.range("gloo:all_reduce", number * 100 + 60, 30)
        made.write(folder / f"rank{rank}.json")
    run = wb.open(folder)
    scene = scene_of(run)
    assert scene.ranks == ("Rank 0", "Rank 1")
    assert {track.group.partition(" · ")[0] for track in scene.tracks} == {"Rank 0", "Rank 1"}
    add = run.job.clock.add_ns  # type: ignore[union-attr]
    assert scene.moves == (0, add[1] - add[0])  # type: ignore[operator]
    assert {track.rank for track in scene_of(run, ranks=[1]).tracks} == {0}
    with pytest.raises(RunError, match="has no rank 7"):
        scene_of(run, ranks=[7])
    with pytest.raises(RunError, match="at least one"):
        scene_of(run, ranks=[])


def test_loader_workers_have_a_lane_each_with_the_stages_inside():
    batches = pd.DataFrame(
        {
            "stream": 0,
            "worker": [0, 1, 0],
            "batch": [0, 1, 2],
            "fetch_start_ns": [100, 100, 500],
            "fetch_ns": [300, 310, 300],
            "samples_ns": [200, 200, 200],
            "collate_start_ns": [310, 310, 710],
            "collate_ns": [50, 50, 50],
            "serialize_start_ns": [0, 0, 0],
            "serialize_ns": [0, 0, 0],
            "pin_start_ns": pd.array([None, None, None], dtype="Int64"),
            "pin_ns": pd.array([None, None, None], dtype="Int64"),
        }
    )
    labels = Labels()
    first, second = loader_tracks(batches, labels, rank=0, move=0)
    assert (first.name, second.name) == ("worker 0", "worker 1")
    said = [labels.pairs()[code][0] for code in first.label]
    assert said == [
        *("batch 0", "batch 2"),
        *("samples of batch 0", "collate batch 0", "samples of batch 2", "collate batch 2"),
    ]
    assert first.depth.tolist() == [0, 0, 1, 1, 1, 1]


def test_a_thinned_counter_keeps_its_peaks():
    at = np.arange(10_000, dtype=np.int64)
    value = np.zeros(10_000)
    value[4321] = 7.0
    value[777] = -3.0
    kept_at, kept = thinned(at, value, 100)
    assert len(kept) <= 100
    assert (kept.max(), kept.min()) == (7.0, -3.0)
    assert kept_at[kept.argmax()] == 4321
    assert (np.diff(kept_at) > 0).all()


@pytest.mark.parametrize(
    ("name", "kind", "category"),
    [
        ("ncclDevKernel_AllReduce_Sum", Kind.KERNEL, "communication"),
        ("sgemm", Kind.KERNEL, "compute"),
        ("Memcpy DtoH", Kind.MEMCPY, "memory"),
        ("cudaLaunchKernel", Kind.RUNTIME, "launch"),
        ("cudaStreamSynchronize", Kind.RUNTIME, "synchronization"),
        ("cudaMalloc", Kind.RUNTIME, "allocation"),
        ("cudaGetDevice", Kind.RUNTIME, "host_other"),
        ("autograd::engine::evaluate_function: MmBackward0", Kind.OPERATOR, "backward"),
        ("Optimizer.step#Adam.step", Kind.ANNOTATION, "optimizer"),
        ("aten::mm", Kind.OPERATOR, "host_operators"),
        ("my range", Kind.ANNOTATION, "range"),
        ("gloo:all_reduce", Kind.ANNOTATION, "communication"),
        ("workbench.gc", Kind.ANNOTATION, "garbage_collection"),
        ("workbench.input", Kind.ANNOTATION, "input"),
        ("train.py(3): step", Kind.PYTHON, "host_python"),
        ("anything", Kind.OTHER, "host_other"),
    ],
)
def test_every_record_has_the_colour_of_its_category(name: str, kind: Kind, category: str):
    assert category_of(name, kind) == category
    assert category in CODE


@pytest.mark.parametrize(
    ("second", "rows"),
    [
        (999, 1),  # begins 1 ns before the end of the first: rounding
        (990, 1),  # 10 ns of 1000: a hundredth
        (900, 2),  # that is no rounding
    ],
)
def test_rounding_opens_no_second_row(second: int, rows: int):
    both = np.array([0, second], np.int64), np.array([1000, 1000], np.int64)
    made = track("stream", "s", "GPU 0", 0, *both, np.zeros(2, np.int32))
    assert made.depth.max() + 1 == rows
    if rows == 1:
        assert (made.start + made.dur).tolist() == [second, second + 1000]
