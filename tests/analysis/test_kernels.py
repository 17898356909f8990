"""What ran on the devices, by name."""

import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.kernels import KERNEL_COLUMNS, kernel_table
from workbench.analysis.ranges import Range


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
