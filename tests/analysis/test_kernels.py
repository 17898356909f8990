"""What ran on the devices, by name."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.kernel_families import (
    FAMILY_COLUMNS,
    family_table,
    unclassified_share,
)
from workbench.analysis.kernels import KERNEL_COLUMNS, kernel_table
from workbench.analysis.ranges import Range
from workbench.trace import read


def two_devices() -> Kineto:
    made = Kineto()
    for ts, dur in ((0, 10), (20, 20), (50, 30)):
        made.kernel("volta_sgemm_64x64_nn", ts, dur)
    made.kernel("Memcpy HtoD (Pageable -> Device)", 5, 40, stream=9, cat="gpu_memcpy")
    made.kernel("volta_sgemm_64x64_nn", 0, 7, device=1)
    return made


def test_calls_total_and_median_of_each_name_on_each_device() -> None:
    table = kernel_table(columns(two_devices()), None)
    assert tuple(table.columns) == KERNEL_COLUMNS
    rows = table[["device", "name", "calls", "total_ns", "median_ns"]].to_numpy().tolist()
    assert rows == [
        [0, "volta_sgemm_64x64_nn", 3, 60 * US, 20 * US],
        [0, "Memcpy HtoD (Pageable -> Device)", 1, 40 * US, 40 * US],
        [1, "volta_sgemm_64x64_nn", 1, 7 * US, 7 * US],
    ]


def test_shares_sum_to_one_on_each_device_even_where_streams_overlap() -> None:
    table = kernel_table(columns(two_devices()), None)
    assert table["share"].tolist() == [0.6, 0.4, 1.0]


def test_family_and_tensor_core_come_from_the_name() -> None:
    table = kernel_table(columns(two_devices()), None)
    assert table["family"].tolist() == ["gemm", "copy", "gemm"]
    assert table["tensor_core"].tolist() == [False, False, False]


def test_a_name_that_tells_nothing_is_unknown_not_false() -> None:
    made = Kineto()
    made.kernel("mystery", 0, 10)
    assert kernel_table(columns(made), None)["tensor_core"].tolist() == [None]


def test_the_median_of_an_even_number_lies_between_the_two_in_the_middle() -> None:
    made = Kineto()
    for ts, dur in ((0, 10), (20, 13)):
        made.kernel("k", ts, dur)
    assert kernel_table(columns(made), None)["median_ns"].tolist() == [11.5 * US]


def test_a_range_holds_what_starts_in_it() -> None:
    """[20, 50) holds the kernel that starts at 20, not the one that starts at 50."""
    table = kernel_table(columns(two_devices()), Range(start=20 * US, end=50 * US))
    assert table[["calls", "total_ns"]].to_numpy().tolist() == [[1, 20 * US]]


def test_kernels_of_a_graph_are_counted_each() -> None:
    """T07: one launch, a thousand kernels of the same correlation."""
    made = Kineto()
    made.runtime("cudaGraphLaunch", 0, 5, correlation=1)
    for i in range(1_000):
        made.kernel(f"k{i % 2}", 10 + i, 1, correlation=1)
    assert kernel_table(columns(made), None)["calls"].tolist() == [500, 500]


@pytest.mark.parametrize("span", [None, Range(start=0, end=10)])
def test_no_kernels_give_an_empty_table_with_all_columns(span: Range | None) -> None:
    table = kernel_table(columns(Kineto()), span)
    assert len(table) == 0
    assert tuple(table.columns) == KERNEL_COLUMNS


def test_names_that_are_no_valid_text_are_kept() -> None:
    made = Kineto()
    made.kernel("a\ud800b", 0, 10)
    made.kernel("c\ud801d", 20, 10)
    assert len(kernel_table(columns(made), None)) == 2


def launched(made: Kineto, ts: float, dur: float, **recorded: float) -> None:
    """A kernel with its launch configuration, which always tells grid and block."""
    made.kernel("gemm", ts, dur, grid=[8, 1, 1], block=[128, 1, 1], **recorded)


def test_launch_configurations_are_weighted_by_time() -> None:
    """10 us at 50 % and 30 us at 90 %: (10 x 0.5 + 30 x 0.9) / 40 = 0.8."""
    made = Kineto()
    both = {"registers per thread": 32, "shared memory": 1024, "blocks per SM": 4.0}
    launched(made, 0, 10, **both, **{"est. achieved occupancy %": 50})
    launched(made, 50, 30, **both, **{"est. achieved occupancy %": 90})
    row = kernel_table(columns(made), None).iloc[0]
    assert row["occupancy"] == pytest.approx(0.8)
    assert (row["registers"], row["shared_memory_bytes"], row["blocks_per_sm"]) == (32, 1024, 4)


def test_calls_that_record_nothing_have_no_weight() -> None:
    made = Kineto()
    launched(made, 0, 10, **{"est. achieved occupancy %": 50})
    launched(made, 50, 1000)
    made.kernel("gemm", 2000, 1000)
    assert kernel_table(columns(made), None)["occupancy"].tolist() == [0.5]


def test_what_no_call_records_is_missing() -> None:
    made = Kineto()
    launched(made, 0, 10)
    row = kernel_table(columns(made), None).iloc[0]
    for name in ("occupancy", "blocks_per_sm", "registers", "shared_memory_bytes"):
        assert np.isnan(row[name])


def test_families_sum_their_kernels() -> None:
    """Two names of gemm on one device; a copy; 7 us of gemm on the other."""
    made = two_devices()
    made.kernel("ampere_bf16_s16816gemm_128x64", 90, 60)
    table = family_table(kernel_table(columns(made), None))
    assert tuple(table.columns) == FAMILY_COLUMNS
    rows = table[["device", "family", "kernels", "calls", "total_ns"]].to_numpy().tolist()
    assert rows == [
        [0, "gemm", 2, 4, 120 * US],
        [0, "copy", 1, 1, 40 * US],
        [1, "gemm", 1, 1, 7 * US],
    ]
    assert table["tensor_core_share"].tolist() == [0.5, 0.0, 0.0], "60 of 120 us use them"


def test_what_no_pattern_knows_is_shown() -> None:
    """30 us of a name that tells nothing beside 10 us of gemm."""
    made = Kineto()
    made.kernel("mystery", 0, 30)
    made.kernel("volta_sgemm_64x64_nn", 50, 10)
    assert unclassified_share(family_table(kernel_table(columns(made), None))) == 0.75


def test_no_work_has_no_unclassified_share() -> None:
    assert unclassified_share(family_table(kernel_table(columns(Kineto()), None))) is None


@pytest.mark.traces
def test_occupancy_of_a_real_trace_by_pandas_alone(traces_root: Path) -> None:
    """Every kernel of the ResNet with its estimate; groupby and a weighted mean."""
    (path,) = traces_root.glob("facebookresearch__HolisticTraceAnalysis/*ns_resolution*")
    raw = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"])
    raw = raw[raw["cat"] == "kernel"]
    raw["occupancy"] = [args["est. achieved occupancy %"] / 100 for args in raw["args"]]
    raw["registers"] = [args["registers per thread"] for args in raw["args"]]
    table = kernel_table(read(path), None).set_index("name")
    for name, own in raw.groupby("name"):
        for column in ("occupancy", "registers"):
            mean = (own[column] * own["dur"]).sum() / own["dur"].sum()
            assert table.loc[name, column] == pytest.approx(mean, rel=1e-4)
