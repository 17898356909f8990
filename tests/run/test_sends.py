"""A send and its receive: how long the one that came first waits, and how long the data travels."""

from pathlib import Path

import pandas as pd

import workbench as wb
from tests.analysis.traces import US
from tests.kineto import Kineto

STEPS = 3


def stage(rank: int, world: int, calls: list[tuple[str, float, float]]) -> Kineto:
    """The host trace of a rank that sends and receives 1 kB at these times of every step."""
    made = Kineto()
    made.header["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": world}
    for number in range(STEPS):
        at = 1000.0 * number
        made.step(number, at, 1000)
        for name, start, took in calls:
            made.op("aten::mm", at + start - 40, 30)
            made.event(
                f"gloo:{name}",
                "user_annotation",
                at + start,
                took,
                args={"Input Dims": [[256]], "Input type": ["float"]},
            )
    return made


def table(folder: Path, *ranks: list[tuple[str, float, float]]) -> pd.DataFrame:
    for number, calls in enumerate(ranks):
        made = stage(number, len(ranks), calls)
        made.write(folder / f"rank{number}.trace.json")
    run = wb.open(folder)
    assert run.job is None or run.job.straggler is None, "stages wait for each other by design"
    found = run.communication
    assert found is not None
    return found.set_index(["rank", "collective"])


FIRST = [("send", 100.0, 60.0), ("recv", 300.0, 280.0)]
LAST = [("recv", 50.0, 130.0), ("send", 500.0, 60.0)]


def test_both_ends_divide_what_they_took(tmp_path: Path) -> None:
    """Rank 1 asks at 50 for what rank 0 sends from 100 on: 50 of its 130 are waiting.

    Rank 0 asks at 300 for what rank 1 sends from 500 on: 200 of its 280 are waiting. Nobody lets a
    send wait. Three steps each.
    """
    found = table(tmp_path, FIRST, LAST)
    assert (found["wait_ns"] / (STEPS * US)).to_dict() == {
        (0, "recv"): 200,
        (0, "send"): 0,
        (1, "recv"): 50,
        (1, "send"): 0,
    }
    assert (found["wait_ns"] + found["transfer_ns"] == found["total_ns"]).all()


def test_a_send_waits_for_a_receiver_that_comes_late(tmp_path: Path) -> None:
    """It asks 40 after the send began. The way back, 70 like this one, ties the clocks."""
    late = [("recv", 140.0, 30.0), ("send", 500.0, 60.0)]
    found = table(tmp_path, [("send", 100.0, 60.0), ("recv", 490.0, 80.0)], late)
    assert found.loc[(0, "send"), "wait_ns"] == STEPS * 40 * US
    assert found.loc[(1, "recv"), "wait_ns"] == 0


def test_a_send_that_goes_on_when_the_data_is_there_moves_nothing(tmp_path: Path) -> None:
    """Its range ends 500 after the receive: 80 of its 580 are transfer, as of the receive."""
    long = [("send", 100.0, 580.0), ("recv", 300.0, 280.0)]
    found = table(tmp_path, long, LAST)
    assert found.loc[(0, "send"), "transfer_ns"] == STEPS * 80 * US
    assert found.loc[(1, "recv"), "transfer_ns"] == STEPS * 80 * US
    assert found.loc[(1, "recv"), "wait_ns"] == STEPS * 50 * US


def test_clocks_that_are_apart_are_tied_by_messages_both_ways(tmp_path: Path) -> None:
    """Rank 1's clock is 3 ms ahead: 80 us there and 80 us back leave no other middle."""
    for number, calls in enumerate((FIRST, LAST)):
        made = stage(number, 2, calls)
        made.header["baseTimeNanoseconds"] += number * 3_000_000
        made.write(tmp_path / f"rank{number}.trace.json")
    found = wb.open(tmp_path).communication
    assert found is not None
    assert found.set_index(["rank", "collective"]).loc[(1, "recv"), "wait_ns"] == STEPS * 50 * US


def test_of_three_ranks_nobody_knows_who_is_at_the_other_end(tmp_path: Path) -> None:
    found = table(tmp_path, FIRST, LAST, [])
    assert found["wait_ns"].isna().all()


def test_one_end_alone_is_not_divided(tmp_path: Path) -> None:
    stage(0, 2, FIRST).write(tmp_path / "rank0.trace.json")
    found = wb.open(tmp_path).communication
    assert found is not None
    assert found["wait_ns"].isna().all()
