"""``wb.compare``: a verdict only beyond the noise, and everything else in which Runs differ."""

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

import workbench as wb
from tests.run.test_open import gpu_trace
from workbench.errors import RunError
from workbench.run.view import view
from workbench.run.where import within_noise
from workbench.statistics.change import compare_steps
from workbench.store.record import RunRecord, Timings
from workbench.store.writing import new_run_folder
from workbench.units import spread_text

MS = 1_000_000


def measured(
    parent: Path,
    name: str,
    *,
    step_ms: float,
    noise: float = 0.01,
    samples: float = 32.0,
    **rest: object,
) -> Path:
    """A Run folder whose 80 steps last ``step_ms`` with Gaussian noise, in two blocks."""
    rng = random.Random(name)
    steps = [int(step_ms * MS * rng.gauss(1, noise)) for _ in range(80)]
    effective = {"workers": 0, **rest}
    with new_run_folder(parent, name) as new:
        gpu_trace().write(new.path / "rank0.trace.json.gz")
        new.record = RunRecord(
            name=name,
            created="2026-01-01T00:00:00+00:00",
            workbench="0",
            settings={},
            effective=effective,
            record={},
            environment={"torch": "2.13.0"},
            seeds={},
            timings=Timings(
                step_ns=steps,
                input_ns=[ns // 10 for ns in steps],
                warmup=0,
                blocks=[40, 40],
                profiled_step_ns=steps[:5],
            ),
            overhead_ratio=1.0,
            samples_per_step=samples,
            traces=["rank0.trace.json.gz"],
        )
    return parent / name


def test_half_the_step_time_is_faster(tmp_path: Path) -> None:
    first = wb.open(measured(tmp_path, "first", step_ms=100))
    second = wb.open(measured(tmp_path, "second", step_ms=50, workers=2))
    found = wb.compare(first, second)
    assert found.verdict == "faster"
    assert found.change.ratio == pytest.approx(0.5, rel=0.03)
    assert re.match(
        r"▲ second is faster than first: [\d.]+ % \([\d.]+–[\d.]+\) less time", found.sentence
    )
    assert [(d.name, d.first, d.second) for d in found.differences] == [("workers", 0, 2)]


def test_the_sentence_and_the_figure_write_one_interval_one_way(tmp_path: Path) -> None:
    first = wb.open(measured(tmp_path, "a", step_ms=100, noise=0.03))
    for name, step_ms in (("b", 50), ("c", 100.5)):
        found = wb.compare(first, wb.open(measured(tmp_path, name, step_ms=step_ms, noise=0.03)))
        interval = re.search(r"[\d.]+ % \(.*?\) less|between .* less and .* more", found.sentence)
        assert interval is not None
        assert interval.group() in found.figure().title


def test_the_same_program_twice_is_cannot_tell(tmp_path: Path) -> None:
    first = wb.open(measured(tmp_path, "a", step_ms=100, noise=0.05))
    second = wb.open(measured(tmp_path, "b", step_ms=100, noise=0.05))
    assert first.compare(second).verdict == "cannot_tell"
    assert "differ by themselves" in first.compare(second).to_json()["reason"]
    assert "cannot tell" in repr(first.compare(second))


def test_a_trace_alone_has_no_real_step_times_but_is_compared(tmp_path: Path) -> None:
    trace = wb.open(gpu_trace().write(tmp_path / "t.json"))
    run = wb.open(measured(tmp_path, "run", step_ms=100))
    found = wb.compare(run, trace)
    assert found.verdict == "cannot_tell"
    assert "t.json has no step times of record" in found.sentence
    assert any(note.startswith("Step times under the profiler: ") for note in found.notes)
    document = found.to_json()
    assert document["median_us"]["second"] is None
    assert document["profiled"]["steps"]["second"] > 0
    assert found.kernels is not None


@pytest.mark.parametrize("other", [None, "runs/b", 5])
def test_what_is_no_run_is_refused(tmp_path: Path, other: Any) -> None:
    run = wb.open(measured(tmp_path, "a", step_ms=10))
    with pytest.raises(RunError, match=r"needs two Runs.*wb\.open"):
        wb.compare(run, other)


def test_runs_lists_loads_and_deletes(tmp_path: Path) -> None:
    measured(tmp_path, "one", step_ms=100)
    measured(tmp_path, "two", step_ms=100)
    listed = wb.runs(tmp_path)
    assert sorted(listed.names()) == ["one", "two"]
    assert listed["one"].name == "one"
    listed.delete("one")
    assert listed.names() == ["two"]
    with pytest.raises(RunError, match="no Run named 'one'"):
        listed["one"]


def test_a_larger_batch_is_judged_by_the_time_of_a_sample(tmp_path: Path) -> None:
    """Twice the samples in 1.5 times the time: 1.5 / 2 = 0.75 of the time of a sample."""
    first = wb.open(measured(tmp_path, "small", step_ms=100, samples=32))
    second = wb.open(measured(tmp_path, "large", step_ms=150, samples=64))
    found = wb.compare(first, second)
    assert found.per == "sample"
    assert found.verdict == "faster"
    assert found.change.ratio == pytest.approx(0.75, rel=0.03)
    assert found.to_json()["median_us"]["first"] == pytest.approx(100_000 / 32, rel=0.03)
    assert "time a sample" in found.sentence
    assert "samples_per_step" in [d.name for d in found.differences]


def with_times(folder: Path, step_ms: list[float], blocks: list[int], **rest: object) -> wb.Run:
    """The Run in ``folder`` with other step times."""
    place = folder / "run.json"
    record = msgspec.json.decode(place.read_bytes(), type=RunRecord)
    steps = [int(ms * MS) for ms in step_ms]
    timings = msgspec.structs.replace(record.timings, step_ns=steps, input_ns=[], blocks=blocks)
    timings = msgspec.structs.replace(timings, **rest)
    place.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, timings=timings)))
    return wb.open(folder)


def test_workers_that_hand_over_together_are_judged_by_their_pace(tmp_path: Path) -> None:
    # Two workers: 90 ms, then a batch that lies ready, 10 ms; 50 ms a step, like the other Run.
    first = wb.open(measured(tmp_path, "first", step_ms=50, noise=0.001))
    folder = measured(tmp_path, "second", step_ms=50, workers=2)
    jitter = random.Random(1)
    lumpy = [ms * jitter.gauss(1, 0.001) for _ in range(40) for ms in (90.0, 10.0)]
    second = with_times(folder, lumpy, [40, 40])
    found = wb.compare(first, second)
    assert found.change.ratio == pytest.approx(1.0, abs=0.01)
    assert found.verdict == "cannot_tell"


def test_runs_that_took_turns_are_not_widened_by_the_drift_that_met_both(tmp_path: Path) -> None:
    # The machine became 30 % slower from block to block under both; the second takes 30 % less.
    drift = [1.0] * 20 + [1.1] * 20 + [1.2] * 20 + [1.3] * 20
    sides = []
    for name, factor in (("first", 100.0), ("second", 70.0)):
        folder = measured(tmp_path, name, step_ms=50)
        sides.append([folder, [factor * by for by in drift]])
    alone = [with_times(folder, times, [20] * 4) for folder, times in sides]
    assert wb.compare(*alone).verdict == "cannot_tell"
    beside = [with_times(folder, times, [20] * 4, turns="a mark") for folder, times in sides]
    assert wb.compare(*beside).verdict == "faster"
    others = [
        with_times(folder, times, [20] * 4, turns=name)
        for (folder, times), name in zip(sides, "ab", strict=True)
    ]
    assert wb.compare(*others).verdict == "cannot_tell"


def test_memory_and_loss_stand_beside_the_times(tmp_path: Path) -> None:
    runs = []
    for name, peak, loss in (("first", 2_000_000_000, 0.51), ("second", 1_500_000_000, None)):
        folder = measured(tmp_path, name, step_ms=50)
        place = folder / "run.json"
        record = msgspec.json.decode(place.read_bytes(), type=RunRecord)
        memory = {"peak_rss_bytes": peak, "workers_bytes": 0, "device_peak_bytes": None}
        record = msgspec.structs.replace(record, peak_memory=memory, loss=loss)
        place.write_bytes(msgspec.json.encode(record))
        runs.append(wb.open(folder))
    found = wb.compare(*runs)
    assert found.rows()[-2:] == [
        ("peak memory of the process", "2.00 GB", "1.50 GB"),
        ("loss of the last step measured", "0.51", "not measured"),
    ]
    told = found.to_json()
    assert told["memory"]["device_peak_bytes"] == {"first": None, "second": None}
    assert told["loss"] == {"first": 0.51, "second": None}


def test_noise_beyond_double_says_nothing_but_to_measure_again(tmp_path: Path) -> None:
    """Halves of 40 steps of 1 ms and of 100 ms: a side differs from itself a hundredfold."""
    steps = [MS] * 40 + [100 * MS] * 40
    found = [
        compare_steps([steps[:40], steps[40:]], [steps[:40], steps[40:]]),
        compare_steps([[MS] * 40] * 2, [[MS] * 40] * 2),
    ]
    assert found[0].too_noisy
    assert not found[1].too_noisy
    first, second = (wb.open(measured(tmp_path, name, step_ms=100)) for name in "ab")
    made = replace(wb.compare(first, second), change=found[0])
    assert made.sentence.startswith("≈ cannot tell: the measurements are too noisy to say anything")
    assert "more than double" in made.sentence
    assert "on a quiet machine" in made.sentence
    assert not re.search(r"\d %", made.sentence)
    assert "too noisy" in made.figure().title


def test_host_times_inside_the_noise_are_neither_faster_nor_slower() -> None:
    """With 50 % of noise 10 to 14 is hidden (+40 %), 10 to 16 is not; the device's times stay."""
    table = pd.DataFrame(
        {
            "change": ["slower", "slower", "faster", "added"],
            "first_ns": [10.0, 10.0, 14.0, 0.0],
            "second_ns": [14.0, 16.0, 10.0, 5.0],
            "host_change": ["slower", "slower", "faster", "added"],
            "host_first_ns": [10.0, 10.0, 14.0, 0.0],
            "host_second_ns": [14.0, 16.0, 10.0, 5.0],
        }
    )
    hidden = ["same", "slower", "same", "added"]
    on_host, on_device = within_noise(table, 0.5, "host"), within_noise(table, 0.5, "device")
    assert on_host["change"].tolist() == on_host["host_change"].tolist() == hidden
    assert on_device["change"].tolist() == table["change"].tolist()
    assert on_device["host_change"].tolist() == hidden


@pytest.mark.parametrize(
    ("spread", "said"), [(0.02, "2.0 %"), (1.0, "100 %"), (73.48, "more than double")]
)
def test_a_spread_beyond_double_has_no_percentage(spread: float, said: str) -> None:
    assert spread_text(spread) == said


def test_the_noise_of_a_run_is_not_told_in_thousands_of_percent(tmp_path: Path) -> None:
    """Halves of 1 ms and of 75 ms: the floor is 7400 %, which is no number to read."""
    run = wb.open(measured(tmp_path, "a", step_ms=100))
    assert run.record is not None
    assert run.record.timings is not None
    steps = [MS] * 40 + [75 * MS] * 40
    changed = msgspec.structs.replace
    timings = changed(run.record.timings, step_ns=steps, input_ns=[], blocks=[40, 40], warmup=0)
    run.record = changed(run.record, timings=timings)
    rows = dict(view(run).measured)
    assert "more than double" in rows["noise"]
    assert "%" not in rows["noise"]
    noisy = next(finding for finding in run.findings if finding.code == "WB902")
    assert "more than double" in noisy.title


def test_the_noise_of_a_run_with_workers_is_that_of_its_pace(tmp_path: Path) -> None:
    # The median of seven steps is that of a waiting one, 90 ms, or of a ready one, 10 ms, in turn:
    # ninefold, as noise. Every two steps together take 100 ms.
    folder = measured(tmp_path, "lumpy", step_ms=50, workers=2)
    run = with_times(folder, [90.0, 10.0] * 21, [7] * 6)
    assert "differ by 0.0 %" in dict(view(run).measured)["noise"]


def test_workers_that_bring_batches_together_are_explained(tmp_path: Path) -> None:
    """Three steps of 10 ms and one of 170 in turn: their pace is 50, and the median step 10."""
    one = measured(tmp_path, "one", step_ms=100)
    two = measured(tmp_path, "two", step_ms=50, workers=4)
    plain = " ".join(wb.compare(wb.open(one), wb.open(two)).notes)
    assert "its operators are missing there, not gone" in plain
    assert "The loader of two works in processes of its own" in plain
    assert "every step is the mean" not in plain, "steps alike have their pace as median"
    in_turn = with_times(two, [10, 10, 10, 170] * 20, [40, 40])
    told = " ".join(wb.compare(wb.open(one), in_turn).notes)
    assert "so of two every step is the mean of its neighbours" in told
