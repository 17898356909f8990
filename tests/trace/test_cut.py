"""Slices: what is in them, what is cut at the edge, and that device work stays with its step."""

import json
from pathlib import Path

import pytest

from tests.kineto import Kineto
from tests.trace.reference import names
from workbench.errors import TraceError
from workbench.trace import read
from workbench.trace.table import Trace
from workbench.trace.writing import cut, write_trace


def three_steps() -> Trace:
    """Steps 4, 5, 6 of 100 µs; each launches a kernel that runs only in the next step."""
    made = Kineto(gpu=True)
    made.range("epoch", 0, 400)
    for number, start in ((4, 0), (5, 100), (6, 200)):
        made.step(number, start, 100)
        made.op(f"op{number}", start + 10, 30, **{"Input Dims": [[number]]})
        made.launched(
            f"kernel{number}",
            call=(start + 20, 5),
            kernel=(start + 110, 80),
            correlation=number,
        )
        flow = {"id": number, "pid": 100, "tid": 100, "cat": "ac2g"}
        made.events += [
            {"ph": "s", "ts": start + 20, **flow},
            {"ph": "f", "ts": start + 110, **flow},
        ]
    return read(json.dumps(made.document()).encode())


def by_name(trace: Trace) -> dict[str, tuple[int, int]]:
    """Start and end in µs of every event, by name."""
    events = trace.events
    spans = zip((events.ts // 1000).tolist(), (events.end // 1000).tolist(), strict=True)
    return dict(zip(names(trace), spans, strict=True))


def test_a_step_keeps_the_work_that_it_launched_whole() -> None:
    """Step 5: its kernel runs from 210 to 290, in step 6; that of step 4 ran in step 5."""
    found = by_name(cut(three_steps(), steps=(5, 5)))

    assert found["ProfilerStep#5"] == (0, 100)
    assert found["kernel5"] == (110, 190)
    assert "op5" in found
    assert not {"op4", "op6", "kernel4", "kernel6", "ProfilerStep#6"} & set(found)


def test_records_around_the_slice_are_cut_to_it() -> None:
    assert by_name(cut(three_steps(), steps=(5, 5)))["epoch"] == (0, 100)


def test_arrows_follow_the_launches() -> None:
    found = cut(three_steps(), steps=(5, 5)).flows

    assert found.id.tolist() == [5, 5]
    assert (found.ts // 1000).tolist() == [20, 110]


def test_a_range_of_time_is_cut_on_the_device_too() -> None:
    """From 150 to 250: the second half of one kernel, the first of the next; no arrow has both."""
    sliced = cut(three_steps(), start_ns=150_000, end_ns=250_000)
    found = by_name(sliced)

    assert found["kernel4"] == (0, 40)
    assert found["kernel5"] == (60, 100)
    assert found["ProfilerStep#6"] == (50, 100)
    assert sliced.flows.id.tolist() == []


def test_unix_time_moves_with_the_slice(tmp_path: Path) -> None:
    trace = three_steps()
    assert trace.base_ns is not None
    write_trace(trace, tmp_path / "t.json", steps=(6, 6))
    found = read(tmp_path / "t.json")

    assert found.base_ns == trace.base_ns + 200_000
    assert found.header["workbench_slice"]["steps"] == [6, 6]  # type: ignore[index]


def test_tables_by_row_move_along() -> None:
    made = Kineto(gpu=True)
    made.op("before", 0, 1)
    made.kernel("gemm", 10, 1, grid=[7, 1, 1], block=[32, 1, 1])
    made.kernel("ncclKernel", 20, 1, **{"Collective name": "allreduce"})
    found = cut(read(json.dumps(made.document()).encode()), start_ns=5_000)

    assert names(found) == ["gemm", "ncclKernel"]
    assert found.launch_configurations.row.tolist() == [0]
    assert found.launch_configurations.grid.tolist() == [[7, 1, 1]]
    assert [(c.row, c.name) for c in found.collectives] == [(1, "allreduce")]


def test_the_whole_range_is_the_whole_trace() -> None:
    trace = three_steps()

    assert by_name(cut(trace, start_ns=0)) == by_name(trace)


@pytest.mark.parametrize(
    ("steps", "said"), [((7, 9), "its steps are 4 to 6"), ((1, 3), "no step 1 to 3")]
)
def test_a_step_that_is_not_there_is_an_error(steps: tuple[int, int], said: str) -> None:
    with pytest.raises(TraceError, match=said):
        cut(three_steps(), steps=steps)


def test_a_trace_without_steps_says_so() -> None:
    made = Kineto()
    made.op("a", 0, 1)

    with pytest.raises(TraceError, match="marks no steps"):
        cut(read(json.dumps(made.document()).encode()), steps=(1, 2))


@pytest.mark.parametrize(("start", "end"), [(5_000_000, None), (9, 3), (5_000_000, 6_000_000)])
def test_an_empty_range_is_an_error(start: int, end: int | None) -> None:
    with pytest.raises(TraceError, match=r"empty|no record"):
        cut(three_steps(), start_ns=start, end_ns=end)


def test_steps_and_times_together_are_refused() -> None:
    with pytest.raises(TraceError, match="not both"):
        cut(three_steps(), steps=(4, 4), start_ns=1)
