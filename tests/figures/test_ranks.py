"""Ranks and collectives drawn: titles that say the finding, nothing drawn of what is unknown."""

import pandas as pd
import pytest

from workbench.figures.collectives import MOST_POINTS, collective_bandwidth
from workbench.figures.ranks import MOST_ROWS, rank_times

MS = 1_000_000


def ranks(waits_ms: list[float | None]) -> pd.DataFrame:
    """Ranks with steps of 100 ms that compute for 60."""
    return pd.DataFrame(
        {
            "rank": range(len(waits_ms)),
            "step_ns": 100.0 * MS,
            "wait_ns": [None if ms is None else ms * MS for ms in waits_ms],
            "compute": 60.0 * MS,
            "host": 5.0 * MS,
        }
    ).astype({"wait_ns": float})


def calls(count: int) -> pd.DataFrame:
    table = pd.DataFrame({"collective": ["all_reduce"] * count, "group": None})
    return table.assign(
        bytes=pd.array([1_000_000] * count, "Int64"), transfer_ns=100_000, bus_gb_s=15.0
    )


def title(figure: object) -> str:
    return str(figure.layout.title.text)  # type: ignore[attr-defined]


def test_the_title_says_who_is_waited_for() -> None:
    drawn = rank_times(ranks([20, 0, 20]), straggler=1, waited_ns=20 * MS)
    assert title(drawn) == "The ranks wait 20.0 ms of each step for rank 1"
    lengths = list(drawn.data[0].x)
    told = [60, 5, 20, 15, 60, 5, 35, 60, 5, 20, 15]
    assert lengths == pytest.approx(told), "in ms, phase by phase; each rank fills its 100 ms"


def test_every_colour_of_the_ranks_is_named() -> None:
    drawn = rank_times(ranks([20, 0, 20]), straggler=1)
    colours = dict(zip([each.name for each in drawn.data[1:]], drawn.data[1:], strict=True))
    assert list(colours) == ["compute", "host", "waits for other ranks", "the rest of the step"]
    assert [each.marker.color for each in colours.values()] == list(drawn.data[0].marker.color[:4])


def test_nothing_is_left_of_a_step_that_is_told_whole() -> None:
    whole = ranks([35, 35]).assign(compute=60.0 * MS, host=5.0 * MS)
    named = [each.name for each in rank_times(whole).data[1:]]
    assert named == ["compute", "host", "waits for other ranks"], "60 + 5 + 35 are all 100 ms"


def test_without_a_straggler_it_says_the_longest_wait() -> None:
    said = title(rank_times(ranks([3, 1])))
    assert said == "No rank holds up the others; the longest wait is 3.0 % of a step"


def test_ranks_that_nothing_ties_are_no_ranks_that_never_wait() -> None:
    assert "not measured" in title(rank_times(ranks([None, None])))


def test_one_rank_is_not_measured() -> None:
    assert title(rank_times(None)) == "Times of the ranks: not measured"


def test_of_many_ranks_those_are_drawn_that_wait_least() -> None:
    drawn = rank_times(ranks([float(n) for n in range(100)]))
    assert f"the {MOST_ROWS} that wait least of 100" in drawn.layout.title.subtitle.text


def test_bandwidth_of_one_rank_alone_is_at_least() -> None:
    said = title(collective_bandwidth(calls(3), at_least=True))
    assert said == "The median all-reduce reaches at least 15.0 GB/s"


def test_unknown_sizes_are_not_drawn() -> None:
    unknown = calls(2).assign(bytes=pd.array([None, None], "Int64"))
    assert title(collective_bandwidth(unknown)) == "Bandwidth of collectives: not measured"


def test_a_job_with_many_collectives_stays_small_enough_to_show() -> None:
    drawn = collective_bandwidth(calls(MOST_POINTS + 5))
    assert len(drawn.data[0].x) == MOST_POINTS
    assert len(drawn.to_json()) < 500_000
