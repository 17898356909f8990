"""The offset of two clocks, from ranges that both of them saw."""

import time
from pathlib import Path

from workbench.recording.loader.clock import Offset, measured_offset, ranges_in, system_offset
from workbench.recording.loader.probe import Wait

GUESS = Offset(ns=1_000_000_000, error_ns=50, source="system")


def wait(start: int, end: int) -> Wait:
    return Wait(start_ns=start, end_ns=end, step=0)


def test_each_range_lies_inside_its_wait_and_so_bounds_the_offset() -> None:
    # True offset 1_000_000_400. The first wait has 300 ns of room before its range and 500 after,
    # the second 900 and 100: so it lies in [-100, +300] around the truth; the middle is +100.
    waits = [wait(10_000, 20_000), wait(30_000, 40_000)]
    ranges = [(1_000_010_700, 1_000_019_900), (1_000_031_300, 1_000_040_300)]
    found = measured_offset(ranges, waits, GUESS)
    assert found == Offset(ns=1_000_000_500, error_ns=200, source="trace")


def test_ranges_of_nobodys_wait_are_left_out() -> None:
    assert measured_offset([(5_000_000_000, 5_000_000_100)], [wait(0, 100)], GUESS) == GUESS


def test_without_a_range_the_systems_clocks_decide() -> None:
    assert measured_offset([], [wait(0, 100)], GUESS) is GUESS


def test_the_systems_clocks_agree_with_each_other() -> None:
    found = system_offset()
    now = time.monotonic_ns() + found.ns - time.time_ns()
    assert abs(now) < 10_000_000
    assert 0 < found.error_ns < 10_000_000


def test_ranges_are_found_in_an_exported_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    event = (
        '{"ph": "X", "cat": "%s", "name": "%s", "pid": 1, "tid": 1,\n"ts": 12.345, "dur": 6.7\n}'
    )
    path.write_text(
        '{"baseTimeNanoseconds": 1000000000,\n"traceEvents": ['
        + ",".join(
            event % pair
            for pair in (
                ("user_annotation", "workbench.input"),
                ("gpu_user_annotation", "workbench.input"),
                ("user_annotation", "other"),
            )
        )
        + "]}"
    )
    assert ranges_in(path) == [(1_000_012_345, 1_000_019_045)]
    path.write_text("")
    assert ranges_in(path) == []
