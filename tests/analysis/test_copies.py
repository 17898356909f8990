"""Copies by kind: bytes, bandwidth, and what hides them."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.copies import (
    COPY_COLUMNS,
    CopyName,
    copy_calls,
    copy_name,
    copy_table,
    find_copies,
)
from workbench.analysis.device_time import device_time
from workbench.analysis.ranges import Range
from workbench.run.rank import RankAnalysis
from workbench.trace import read

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"


def table(made: Kineto, window: Range | None = None) -> pd.DataFrame:
    trace = columns(made)
    everything = Range(start=0, end=int(trace.events.end.max(initial=0)))
    return copy_table(find_copies(trace, {0: window or everything}))


def copy(made: Kineto, name: str, ts: float, dur: float, size: int | None = None) -> None:
    args = {} if size is None else {"bytes": size}
    made.kernel(name, ts, dur, cat="gpu_memcpy", stream=9, **args)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (PAGEABLE, CopyName("HtoD", "pageable")),
        ("Memcpy DtoH (Device -> Pinned)", CopyName("DtoH", "pinned")),
        ("Memcpy DtoD (Device -> Device)", CopyName("DtoD", None)),
        ("Memcpy PtoP (Device -> Device)", CopyName("PtoP", None)),
        ("Memcpy HtoD (Host -> Device)", CopyName("HtoD", None)),  # ROCm tells no more
        ("CopyHostToDevice", CopyName("HtoD", None)),
        ("CopyDeviceToDevice", CopyName("DtoD", None)),
        ("Memcpy HtoA (Pinned -> Array)", CopyName("HtoD", "pinned")),
        ("dma_request", CopyName("other", None)),
    ],
)
def test_the_name_tells_the_way_and_the_memory(name: str, expected: CopyName) -> None:
    assert copy_name(name) == expected


def test_bandwidth_is_all_bytes_over_all_time() -> None:
    """1 MB in 100 us and 1 kB in 10 us: 1 001 000 / 110 000 ns = 9.1 GB/s; the mean rate is 5."""
    made = Kineto()
    copy(made, PAGEABLE, 0, 100, 1_000_000)
    copy(made, PAGEABLE, 200, 10, 1_000)
    row = table(made).iloc[0]
    assert (row["calls"], row["bytes"]) == (2, 1_001_000)
    assert row["gb_s"] == pytest.approx(9.1)


def test_pageable_and_pinned_are_two_rows() -> None:
    made = Kineto()
    copy(made, PAGEABLE, 0, 100, 1_000)
    copy(made, PINNED, 200, 10, 1_000)
    assert table(made)["host_memory"].tolist() == ["pageable", "pinned"]


def test_one_copy_without_a_size_leaves_bytes_and_bandwidth_unmeasured() -> None:
    made = Kineto()
    copy(made, PAGEABLE, 0, 100, 1_000)
    copy(made, PAGEABLE, 200, 10)
    row = table(made).iloc[0]
    assert pd.isna(row["bytes"])
    assert pd.isna(row["gb_s"])


def test_what_a_kernel_covers_is_hidden() -> None:
    """A copy from 0 to 100 beside a kernel from 30 to 70: 60 us exposed, 40 % hidden."""
    made = Kineto()
    copy(made, PINNED, 0, 100, 1_000)
    made.kernel("gemm", 30, 40)
    row = table(made).iloc[0]
    assert (row["exposed_ns"], row["hidden_ns"]) == (60 * US, 40 * US)
    assert row["hidden_share"] == 0.4


def test_two_copies_at_once_share_no_exposed_instant() -> None:
    """0-100 and 50-120: the second is exposed for its last 20 us only."""
    made = Kineto()
    copy(made, PINNED, 0, 100, 1_000)
    made.kernel("Memcpy DtoH (Device -> Pinned)", 50, 70, cat="gpu_memcpy", stream=11, bytes=1)
    exposed = table(made).set_index("kind")["exposed_ns"]
    assert (exposed["HtoD"], exposed["DtoH"]) == (100 * US, 20 * US)


def test_a_copy_at_the_border_counts_inside_it_but_its_rate_is_of_the_whole() -> None:
    """100 us for 1 MB are 10 GB/s, though only 40 us of it lie in the window."""
    made = Kineto()
    copy(made, PINNED, 0, 100, 1_000_000)
    row = table(made, Range(start=60 * US, end=200 * US)).iloc[0]
    assert (row["exposed_ns"], row["gb_s"]) == (40 * US, 10.0)


def test_sets_are_listed_without_a_bandwidth() -> None:
    made = Kineto()
    made.kernel("Memset (Device)", 0, 10, cat="gpu_memset", bytes=4096)
    row = table(made).iloc[0]
    assert (row["kind"], row["exposed_ns"]) == ("set", 10 * US)
    assert pd.isna(row["gb_s"])


def test_no_copies_give_an_empty_table_with_all_columns() -> None:
    made = Kineto()
    made.kernel("gemm", 0, 10)
    assert tuple(table(made).columns) == COPY_COLUMNS
    assert len(table(made)) == 0


def test_calls_hold_what_a_chart_of_sizes_needs() -> None:
    made = Kineto()
    copy(made, PINNED, 0, 100, 1_000_000)
    copy(made, PINNED, 200, 10)
    trace = columns(made)
    calls = copy_calls(find_copies(trace, {0: Range(start=0, end=300 * US)}))
    assert calls[["kind", "bytes", "gb_s"]].to_numpy().tolist() == [["HtoD", 1_000_000, 10.0]]


@pytest.mark.traces
@pytest.mark.parametrize(
    "pattern",
    [
        "pytorch__kineto/*resnet50_num_workers_0__worker0.162*",
        "facebookresearch__HolisticTraceAnalysis/*ns_resolution*",
        "AMD-AGI__TraceLens/*resnet_act_checkpoint*",
        "pytorch__torchrec/*log__resnet18*85866*",
    ],
)
def test_exposed_time_of_all_kinds_is_that_of_the_device(traces_root: Path, pattern: str) -> None:
    (path,) = traces_root.glob(pattern)
    trace = read(path)
    rank = RankAnalysis(source=path.name, rank=None, read=lambda: trace)
    made = copy_table(find_copies(trace, rank.windows))
    for device, window in rank.windows.items():
        assert window is not None
        own = made[made["device"] == device]
        expected = device_time(trace, device, window).exposed_memory
        assert own["exposed_ns"].sum() == expected


@pytest.mark.traces
def test_bytes_and_bandwidth_of_a_real_trace_by_pandas_alone(traces_root: Path) -> None:
    """Twelve pageable batches of 115.6 MB together, at 10 GB/s."""
    (path,) = traces_root.glob("pytorch__kineto/*resnet50_num_workers_0__worker0.162*")
    raw = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"])
    raw = raw[raw["name"] == PAGEABLE]
    size = sum(args["bytes"] for args in raw["args"])
    trace = read(path)
    rank = RankAnalysis(source=path.name, rank=None, read=lambda: trace)
    made = copy_table(find_copies(trace, rank.windows)).set_index("host_memory")
    row = made.loc["pageable"]
    assert (row["calls"], row["bytes"], row["total_ns"]) == (12, size, raw["dur"].sum() * US)
    assert row["gb_s"] == pytest.approx(size / (raw["dur"].sum() * US))
