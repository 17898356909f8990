"""Time moved between categories: only what both sides could record is compared."""

import numpy as np
import pytest

from workbench.analysis.difference.categories import NOT_MEASURED, category_table, comparable

Values = np.ndarray


def us(*values: float) -> Values:
    return np.array([1000 * value for value in values], np.int64)


DEVICE = {
    "compute": us(500, 502, 498, 500),
    "exposed_communication_wait": None,
    "exposed_communication_transfer": us(0, 0, 0, 0),
    "exposed_memory": us(10, 10, 10, 10),
    "input": us(400, 410, 390, 400),
    "launch": us(5, 4, 6, 5),
    "host_python": None,
    "host_other": us(50, 55, 45, 50),
}


def test_time_that_moved_from_waiting_for_data_sums_to_the_step() -> None:
    """Input falls from 400 to 20 µs, compute stays: the step is 380 µs shorter."""
    after = {**DEVICE, "input": us(20, 21, 19, 20)}
    table = category_table(DEVICE, after).set_index("name")
    assert table.loc["input", "change"] == "faster"
    assert table.loc["input", "difference_ns"] == -380_000
    assert table.loc["compute", "change"] == "same"
    assert table["difference_ns"].sum() == -380_000
    assert table["first_ns"].sum() == 965_000


def test_parts_stay_in_their_order() -> None:
    assert list(category_table(DEVICE, DEVICE)["name"]) == [
        "compute",
        "exposed_communication",
        "exposed_memory",
        "input",
        "launch",
        "host_other",
    ]


def test_stacks_on_one_side_move_no_time() -> None:
    """With stacks, 40 of the 50 µs of host code have a name: that is no time that moved."""
    stacks = {**DEVICE, "host_python": us(40, 40, 40, 40), "host_other": us(10, 10, 10, 10)}
    table = category_table(DEVICE, stacks).set_index("name")
    assert "host_python" not in table.index
    assert table.loc["host_other", ["first_ns", "second_ns"]].tolist() == [50_000, 50_000]


def test_wait_and_transfer_stay_apart_where_both_sides_told_them_apart() -> None:
    told = {**DEVICE, "exposed_communication_wait": us(1, 1, 1, 1)}
    assert "exposed_communication_wait" in comparable(told, told)[0]
    assert "exposed_communication_wait" not in comparable(told, DEVICE)[0]


def test_what_one_side_could_not_record_is_no_difference() -> None:
    table = category_table(DEVICE, {**DEVICE, "input": None}).set_index("name")
    assert table.loc["input", "change"] == NOT_MEASURED
    assert table.loc["input", "first_ns"] == 400_000
    assert np.isnan(table.loc["input", ["second_ns", "difference_ns"]].astype(float)).all()


def test_causes_that_cannot_be_told_are_one_part() -> None:
    """Idle is all causes together: 400 + 5 + 50 µs."""
    table = category_table(DEVICE, DEVICE, causes=False).set_index("name")
    assert table.loc["idle", "first_ns"] == 455_000
    assert not {"input", "launch", "host_other"} & set(table.index)


def test_per_sample() -> None:
    table = category_table(DEVICE, DEVICE, per=(32, 64)).set_index("name")
    assert table.loc["compute", "first_ns"] == pytest.approx(500_000 / 32)
    assert table.loc["compute", "second_ns"] == pytest.approx(500_000 / 64)
