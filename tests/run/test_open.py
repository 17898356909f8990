"""``wb.open``: one door for traces, Run folders and folders of ranks."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.kineto import Kineto
from workbench.errors import TraceError, WorkbenchError


def gpu_trace() -> Kineto:
    """Two steps of 100 µs; each waits 30 µs for data, then runs one kernel of 40 µs."""
    trace = Kineto(gpu=True)
    for number, start in enumerate((1000, 1100, 1200)):
        trace.step(number, start, 100)
        trace.loader(start, 30)
        trace.op("aten::mm", start + 30, 8)
        trace.launched(
            "ampere_sgemm_128x64",
            call=(start + 32, 4),
            kernel=(start + 50, 40),
            correlation=number + 1,
        )
    return trace


def test_a_trace_from_anywhere_opens_as_a_run(tmp_path: Path) -> None:
    run = wb.open(gpu_trace().write(tmp_path / "any.json.gz"))
    assert run.kind == "trace"
    assert run.name == "any.json.gz"
    assert run.kernels is not None
    assert run.kernels["total_ns"].sum() == 3 * 40_000


def test_the_breakdown_in_the_document_sums_to_the_window(tmp_path: Path) -> None:
    """Completions at 1090, 1190 and 1290; the first launch's kernel begins the window at 1050."""
    run = wb.open(gpu_trace().write(tmp_path / "t.json"))
    rank = run.summary["ranks"][0]
    parts = rank["devices"][0]["breakdown_us"]
    window = rank["devices"][0]["window"]["time"]
    assert window["span_us"] == 240
    assert window["busy_us"] == 120
    assert sum(v for v in parts.values() if v is not None) == pytest.approx(240, abs=1e-9)
    assert parts["input"] == 60
    assert rank["steps"]["time_us"]["median"] == 100


def test_the_range_lies_behind_the_first_event_also_where_the_device_is_shifted(
    tmp_path: Path,
) -> None:
    """Host from 0 to 40 ns; a kernel at [30, 50) ns "starts" 20 ns after its call at 10.

    Work takes 2 us to begin, so the device's clock is 1980 ns behind: its work ends at 2030.
    """
    trace = Kineto(gpu=True)
    trace.op("op", 0, 0.04)
    trace.launched("k", call=(0.01, 0.01), kernel=(0.03, 0.02), correlation=1)
    rank = wb.open(trace.write(tmp_path / "t.json")).summary["ranks"][0]
    assert rank["devices"][0]["clock_offset_us"] == 1.98
    assert (rank["range"]["start_us"], rank["range"]["end_us"]) == (0, 2.03)


@pytest.mark.traces
@pytest.mark.parametrize("name", ["before", "after"])
def test_the_range_of_a_toy_begins_with_its_first_event(traces_root: Path, name: str) -> None:
    """Both hold a host operator at 0.01 us and a kernel of [0.03, 0.05), called at 0.01."""
    path = traces_root / f"pytorch__kineto/docs__traces__{name}_fix_trace.json"
    found = wb.open(path).summary["ranks"][0]["range"]
    assert (found["start_us"], found["end_us"]) == (0.01, 2.03)


def test_a_bound_on_the_gain_is_of_whole_steps_and_not_of_a_window_that_cuts_one(
    tmp_path: Path,
) -> None:
    """Each step of 100 µs waits 30 idle for data; the window of 240 begins inside the first."""
    (found,) = wb.open(gpu_trace().write(tmp_path / "t.json")).findings
    assert found.code == "WB101", "a device that waits for data gains nothing by another precision"
    assert found.saving_ns_per_step_at_most == 30_000
    assert found.share_of_window == pytest.approx(0.3)
    assert found.evidence["step_us"] == 100


def test_a_folder_with_a_trace_per_rank_is_one_run(tmp_path: Path) -> None:
    for rank in (0, 1):
        made = gpu_trace()
        made.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        made.write(tmp_path / f"rank{rank}.json.gz")
    run = wb.open(tmp_path)
    assert [rank.rank for rank in run.ranks] == [0, 1]
    assert run.kernels is not None
    assert list(run.kernels["rank"]) == [0, 1]
    assert run.kernels["calls"].sum() == 6


def test_a_path_that_is_not_there_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not exist"):
        wb.open(tmp_path / "nothing.json")


def test_a_folder_without_a_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(WorkbenchError):
        wb.open(tmp_path)


def test_tables_that_were_not_measured_are_none_with_a_reason(tmp_path: Path) -> None:
    trace = Kineto()
    trace.op("aten::mm", 10, 5)
    run = wb.open(trace.write(tmp_path / "cpu.json"))
    for name in ("kernels", "idle", "steps", "input", "memory"):
        assert getattr(run, name) is None
        assert run.summary.not_measured[name]
    assert run.operators is not None
    assert run.communication is not None
    assert run.communication.empty, "operators were recorded, and no collective among them"


def test_a_run_shows_itself_as_html_and_as_text(tmp_path: Path) -> None:
    trace = gpu_trace()
    trace.op("<script>alert(1)</script>", 1041, 2)
    run = wb.open(trace.write(tmp_path / "t.json"))
    shown = run._repr_mimebundle_()
    assert "<script>alert" not in shown["text/html"]
    assert "Input-bound" in shown["text/plain"]
    assert "Input-bound" in shown["text/html"]


def test_a_trace_is_not_deleted_by_its_run(tmp_path: Path) -> None:
    path = gpu_trace().write(tmp_path / "t.json")
    with pytest.raises(WorkbenchError, match="not a Run that we recorded"):
        wb.open(path).delete()
    assert path.exists()


def test_every_device_has_its_own_chart_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    trace = gpu_trace()
    for number, start in enumerate((1000, 1100, 1200)):
        trace.launched(
            "volta_sgemm",
            call=(start + 10, 4),
            kernel=(start + 20, 10),
            correlation=90 + number,
            device=1,
        )
    run = wb.open(trace.write(tmp_path / "t.json"))
    assert run.devices == (0, 1)
    assert "GPU 1" in run.figure("breakdown", device=1).title
    with pytest.raises(WorkbenchError, match="recorded devices: 0, 1"):
        run.figure("idle", device=2)
    with pytest.raises(WorkbenchError, match="no figure is called 'pie'"):
        run.figure("pie")


@pytest.mark.skipif(sys.platform == "darwin", reason="file names there are UTF-8 by law")
def test_a_name_that_is_no_utf8_is_shown_with_its_bytes(tmp_path: Path) -> None:
    """Archives from other systems unpack to such names; Python holds the bytes as surrogates."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    place = gpu_trace().write(folder / os.fsdecode(b"r\xff.json"))

    run = wb.open(place)
    assert run.name == r"r\xff.json"
    assert run.summary.to_json()["ranks"][0]["source"] == r"r\xff.json"
    assert wb.open(folder).name == r"caf\xe9"
    repr(wb.open(folder)).encode()

    place.write_text("no trace")
    with pytest.raises(TraceError) as error:
        _ = wb.open(place).kernels
    str(error.value).encode()


@pytest.mark.parametrize("given", [b"t.json", 5, None, io.BytesIO(b"{}")])
def test_what_is_no_path_is_refused_with_the_reader_that_takes_it(given: Any) -> None:
    with pytest.raises(TraceError, match=r"takes the path.*workbench\.trace\.read takes bytes"):
        wb.open(given)


def test_a_path_that_the_system_refuses_is_one_error() -> None:
    """No file system takes a name of 5000 characters, and the message does not repeat it."""
    with pytest.raises(TraceError, match=r"Cannot open x+…: File name too long") as error:
        wb.open("x" * 5000)
    assert len(str(error.value)) < 200


def test_a_folder_that_may_not_be_entered_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(TraceError, match=r"Cannot open there/t\.json: Permission denied"):
        wb.open("there/t.json")
