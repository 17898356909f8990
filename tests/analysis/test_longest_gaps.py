"""The longest idle gaps: when, why, what the host was in meanwhile, and what ended them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import workbench as wb
from tests.analysis.idle_cases import explained
from tests.analysis.traces import MS, US, columns
from tests.kineto import HOST, Kineto
from workbench.analysis.longest_gaps import UNRECORDED, longest_gaps

RESNET = (
    "pytorch__kineto/tb_plugin__samples__resnet50_num_workers_0__worker0.1623143089861"
    ".pt.trace.json.gz"
)
DECODE = (
    "AMD-AGI__TraceLens/tests__traces__inference__sglang_decode__sglang_Qwen3-8B_decode.json.gz"
)
SHORT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def table_of(made: Kineto, **rest: Any) -> pd.DataFrame:
    return longest_gaps(columns(made), explained(made), **rest)


def two_gaps() -> Kineto:
    """Idle for a batch in [100, 200), and for an operator in [210, 260), in microseconds."""
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.loader(110, 40)
    made.launched("second", call=(180, 10), kernel=(200, 10), correlation=2)
    made.op("aten::mm", 212, 45)
    made.launched("third", call=(250, 5), kernel=(260, 10), correlation=3)
    return made


def test_a_gap_tells_when_why_and_what_the_host_was_in() -> None:
    """100 us: 10 and 30 around the loader's 40 without a record, 20 from the call on."""
    first, second = table_of(two_gaps()).to_dict("records")
    assert (first["start_ns"] + 40 * US, first["length_ns"]) == (100 * US, 100 * US)
    assert dict(first["causes"]) == {"input": 40 * US, "host_other": 40 * US, "launch": 20 * US}
    assert dict(first["host"]) == {
        SHORT: 40 * US,
        UNRECORDED: 40 * US,
        "cudaLaunchKernel": 20 * US,
    }
    assert (first["thread"], first["ended_by"]) == (f"thread {HOST}", "second")
    assert first["share"] == pytest.approx(100 / 150)

    assert second["length_ns"] == 50 * US
    assert dict(second["causes"]) == {
        "host_operators": 38 * US,
        "launch": 10 * US,
        "host_other": 2 * US,
    }
    assert dict(second["host"]) == {
        "aten::mm": 38 * US,
        "cudaLaunchKernel in aten::mm": 10 * US,
        UNRECORDED: 2 * US,
    }
    assert (second["ended_by"], second["gaps"]) == ("third", 2)


def test_a_wait_is_named_with_the_operator_around_it() -> None:
    """The call in [62, 170) waits until the device's end at 100: 70 us of it are left to explain.

    The 10 behind it until the next launch are its own, too: no more than the 38 that it waited.
    """
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.op("aten::item", 60, 115)
    made.runtime("cudaStreamSynchronize", 62, 108, correlation=9)
    made.launched("second", call=(180, 10), kernel=(200, 10), correlation=2)
    (gap,) = table_of(made).to_dict("records")
    assert gap["causes"] == (("synchronization", 80 * US), ("launch", 20 * US))
    assert gap["host"][0] == ("cudaStreamSynchronize in aten::item", 80 * US)


def test_the_source_line_is_the_innermost_of_the_longest_piece() -> None:
    """The launching thread is in ``log`` for [110, 170) and in ``train`` around it."""
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.python("train.py(3): train", 10, 400, ident=1, parent=None)
    made.python("train.py(12): log", 110, 60, ident=2, parent=1)
    made.launched("second", call=(180, 10), kernel=(200, 10), correlation=2)
    (gap,) = table_of(made).to_dict("records")
    assert gap["source"] == "train.py(12): log"
    assert dict(gap["causes"])["host_python"] == 80 * US


def test_the_step_is_that_of_the_launch_and_the_thread_that_of_the_launcher() -> None:
    """Step 4 begins at 130, the autograd thread 7 launches at 180 in an operator of its own."""
    made = Kineto(gpu=True)
    made.step(3, 0, 130)
    made.step(4, 130, 200)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.op("autograd::engine::evaluate_function: MulBackward0", 90, 100, tid=7)
    made.launched("second", call=(180, 8), kernel=(200, 10), correlation=2, tid=7)
    (gap,) = table_of(made).to_dict("records")
    assert (gap["step"], gap["thread"]) == (4, "thread 7")


def test_a_shifted_clock_is_told_beside_the_gap() -> None:
    """Work "starts" 5 us before its call; 2 us is the least: the device is shifted by 7."""
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(35, 50), correlation=1)
    made.launched("second", call=(180, 10), kernel=(200, 10), correlation=2)
    assert table_of(made)["uncertainty_ns"].tolist() == [7 * US]


def test_what_rounding_made_is_no_gap_and_only_the_longest_are_given() -> None:
    """Gaps of 0.001, 10, 20 and 30 us: the first is rounding, two are asked for."""
    made = Kineto(gpu=True)
    at = 50.0
    for number, pause in enumerate((0.001, 10, 20, 30, 0)):
        made.launched(f"k{number}", call=(1 + number, 0.5), kernel=(at, 10), correlation=number + 1)
        at += 10 + pause
    found = table_of(made, most=2)
    assert found["length_ns"].tolist() == [30 * US, 20 * US]
    assert found["gaps"].tolist() == [3, 3]
    assert found["ended_by"].tolist() == ["k4", "k3"]
    assert found["host"].tolist() == [(), ()], "the work was queued: the host ran ahead"


def test_every_device_and_rank_has_its_own_gaps(tmp_path: Path) -> None:
    """Device 0 is idle in [100, 200), device 1 in [80, 230); the page puts the longer one first."""
    made = Kineto(gpu=True)
    made.launched("a", call=(40, 5), kernel=(50, 50), correlation=1)
    made.launched("b", call=(45, 5), kernel=(60, 20), correlation=2, device=1)
    made.launched("c", call=(180, 10), kernel=(200, 50), correlation=3)
    made.launched("d", call=(190, 10), kernel=(230, 20), correlation=4, device=1)
    run = wb.open(made.write(tmp_path / "t.json"))
    assert run.gaps is not None
    longest = run.gaps.sort_values("length_ns", ascending=False).drop_duplicates("device")
    assert longest[["device", "length_ns"]].values.tolist() == [[1, 150 * US], [0, 100 * US]]
    shown = run.more("gaps")
    (table,) = shown.tables
    assert [column.name for column in table.columns][:3] == [
        "device",
        "at, in the window",
        "length",
    ]
    assert [row[0] for row in table.rows[:2]] == ["1", "0"]
    assert "The longest idle gaps" in repr(run.part("details"))
    assert run.summary["ranks"][0]["idle_gaps"][0]["causes_us"]["host_other"] == 110
    assert "the host meanwhile" in shown.html()


def test_a_device_that_never_rests_has_a_table_without_rows() -> None:
    made = Kineto(gpu=True)
    made.launched("first", call=(40, 5), kernel=(50, 50), correlation=1)
    made.launched("second", call=(60, 5), kernel=(100, 50), correlation=2)
    assert not len(table_of(made))


def _json(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]


def _gaps(events: list[dict[str, Any]], cats: tuple[str, ...]) -> list[tuple[float, float, str]]:
    """Length, start and the name of the work that ends it, by a plain walk over sorted work."""
    found, reach = [], None
    for e in sorted((e for e in events if e.get("cat") in cats), key=lambda e: float(e["ts"])):
        start = float(e["ts"])
        if reach is not None and start > reach:
            found.append((start - reach, reach, e["name"]))
        reach = max(reach or 0.0, start + float(e["dur"]))
    return sorted(found, reverse=True)


@pytest.mark.traces
def test_the_longest_gaps_of_resnet_are_its_loaders(traces_root: Path) -> None:
    """Plain JSON: five gaps of 48 to 63 ms, each nearly covered by ``__next__`` of the loader."""
    events = _json(traces_root / RESNET)
    loads = [e for e in events if "__next__" in e["name"] and "DataLoader" in e["name"]]
    by_hand = _gaps(events, ("Kernel", "Memcpy", "Memset", "kernel", "gpu_memcpy", "gpu_memset"))
    table = wb.open(traces_root / RESNET).gaps
    assert table is not None
    for row, (length, start, name) in zip(
        table.head(5).to_dict("records"), by_hand[:5], strict=True
    ):
        assert row["length_ns"] / US == pytest.approx(length, abs=0.6)
        assert row["ended_by"] == name
        covered = sum(
            min(float(e["ts"]) + float(e["dur"]), start + length) - max(float(e["ts"]), start)
            for e in loads
            if float(e["ts"]) < start + length and float(e["ts"]) + float(e["dur"]) > start
        )
        assert dict(row["causes"])["input"] / US == pytest.approx(covered, rel=0.001)
        assert "__next__" in row["host"][0][0]
        assert row["host"][0][1] / US == pytest.approx(covered, rel=0.001)


@pytest.mark.traces
def test_the_longest_gap_of_a_decode_is_not_blamed_on_the_host(traces_root: Path) -> None:
    """Plain JSON: 463 ms until a kernel that was launched long before it began."""
    events = _json(traces_root / DECODE)
    length, _, name = _gaps(events, ("kernel", "gpu_memcpy", "gpu_memset"))[0]
    ended = min(
        (e for e in events if e.get("cat") == "kernel" and e["name"] == name),
        key=lambda e: float(e["ts"]),
    )
    call = next(
        e
        for e in events
        if e.get("cat") == "cuda_runtime"
        and e["args"].get("correlation") == ended["args"]["correlation"]
    )
    assert float(ended["ts"]) - float(call["ts"]) > 460_000, "it waited, launched all the while"
    table = wb.open(traces_root / DECODE).gaps
    assert table is not None
    row = table.to_dict("records")[0]
    assert row["length_ns"] / MS == pytest.approx(length / 1000, abs=0.001)
    assert row["ended_by"] == name
    assert row["causes"][0][0] == "unknown"
    assert row["unrecorded_ns"] == row["causes"][0][1]
