"""The loader's charts: the title is the finding, and what was not measured is no chart."""

import numpy as np
import pytest

from workbench.figures import palette
from workbench.figures.empty import reason_of
from workbench.figures.epochs import Epoch, epoch_batches
from workbench.figures.loader_lanes import loader_lanes
from workbench.figures.loader_rate import loader_rate
from workbench.figures.stalls import stall_parts

MS = 1_000_000


def title(figure: object) -> str:
    return str(figure.layout.title.text)  # type: ignore[attr-defined]


def subtitle(figure: object) -> str:
    return str(figure.layout.title.subtitle.text)  # type: ignore[attr-defined]


def test_the_largest_part_of_the_wait_is_the_title() -> None:
    """Two steps of 30 ms, of them 20 and 25 in decoding: 45 of 60."""
    parts = {
        "storage": None,
        "decode": np.array([20, 25]) * MS,
        "transfer": np.array([10, 5]) * MS,
        "pin": np.array([0, 0]),
    }
    figure = stall_parts(parts, numbers=(3, 4), who="GPU 0")
    assert title(figure) == (
        "75 % of the wait for data is for decoding: GPU 0 waits 30.0 ms a step"
    )
    assert subtitle(figure).endswith("not measured: storage")
    assert [bar.name for bar in figure.data] == [
        "decode and transform",
        "transfer between processes",
    ]
    assert list(figure.data[0].y) == [20, 25]


def test_anything_else_is_said_to_be_what_it_is() -> None:
    """Of 40 ms, 20 are other: 18 asleep in samples, and 2 (5 %) between worker and loop."""
    parts = {"decode": np.array([20]) * MS, "other": np.array([20]) * MS}
    by = {"blocked": 18 * MS, "handed": 2 * MS, "queued": 0}
    figure = stall_parts(parts, numbers=(3,), other_by=by)
    assert "anything else is samples that wait outside the processor" in subtitle(figure)
    assert "(network, lock, sleep) (45 %)" in subtitle(figure)
    assert "the loop's own thread had other work (5.0 %)" in subtitle(figure)
    little = {"decode": np.array([990]) * MS, "other": np.array([10]) * MS}
    assert "anything else" not in subtitle(stall_parts(little, numbers=(3,), other_by=by))


def test_many_steps_are_means_that_keep_the_sum() -> None:
    values = np.arange(1_000) * MS
    figure = stall_parts({"decode": values}, numbers=range(1_000))
    assert len(figure.data[0].y) == 200
    assert sum(figure.data[0].y) * 5 == pytest.approx(499_500)  # 0 + 1 + … + 999 ms
    assert "a bar is the mean of 5 steps" in subtitle(figure)


def test_without_a_wait_or_without_records_there_is_a_sentence() -> None:
    waitless = stall_parts({"decode": np.zeros(2, np.int64)}, numbers=(0, 1))
    assert title(waitless) == "No step of the loop waits for data"
    for figure in (
        stall_parts(None),
        loader_lanes(None),
        loader_rate(None, 5),
        epoch_batches(None),
    ):
        assert reason_of(figure)
        assert title(figure).endswith("not measured")


def test_lanes_show_who_waits_above_the_workers_on_one_clock() -> None:
    """From 100 to 200 ms: the loop waits 60 of them for batch 7, made by worker 1 from 90 on."""
    figure = loader_lanes(
        {"worker 1": [(90 * MS, 150 * MS, "decode", 7), (150 * MS, 160 * MS, "transfer", 7)]},
        [(100 * MS, 150 * MS, "decode", 7), (150 * MS, 160 * MS, "transfer", 7)],
        links=[(150 * MS, "worker 1", 160 * MS)],
        start_ns=100 * MS,
        end_ns=200 * MS,
        shown=1,
        of=1,
        fetching=1.0,
        workers=2,
    )
    assert title(figure) == (
        "Here the loop waits for data 60 % of the time; meanwhile 1.0 of 2 workers fetch batches"
    )
    decode, transfer, lines = figure.data
    assert list(decode.y) == ["the loop waits for data", "worker 1"]
    assert list(decode.base) == [0, 0]  # what began before the axis is cut there
    assert list(decode.x) == [50, 50]
    assert transfer.width[1] < transfer.width[0]  # sent beside the next batch, not instead of it
    assert list(lines.x) == [50, 60, None]
    assert figure.layout.yaxis.categoryarray == ("worker 1", "the loop waits for data")


def test_rates_say_how_many_times_too_slow() -> None:
    figure = loader_rate(310, 120, reached=100)
    assert title(figure) == (
        "The model can take 310 samples/s, the loader brings 120: 2.58 times too slow"
    )
    assert list(figure.data[0].x) == [310, 120, 100]
    assert title(loader_rate(100, 400)).endswith("fast enough")
    assert list(loader_rate(310, 120).data[0].x) == [310, 120]


def epoch(number: int, made: float, storage: float) -> Epoch:
    return Epoch(
        number=number,
        batches=10,
        made_ns=made,
        parts_ns={"storage": storage, "decode": made - storage},
        storage_bytes=storage,
    )


def test_a_cold_epoch_is_told_from_warm_ones() -> None:
    cold = epoch_batches([epoch(0, 90 * MS, 60 * MS), epoch(1, 30 * MS, 0), epoch(2, 30 * MS, 0)])
    assert title(cold) == (
        "Making a batch takes 90.0 ms in the first epoch, 30.0 ms later: 3.00 times as long "
        "when cold"
    )
    assert list(cold.data[0].y) == [60, 0, 0]
    alike = epoch_batches([epoch(0, 30 * MS, 0), epoch(1, 29 * MS, 0)])
    assert title(alike).startswith("Making a batch takes about as long in every epoch")
    assert reason_of(epoch_batches([epoch(0, 30 * MS, 0)]))


@pytest.mark.parametrize(
    ("parts", "storage", "said"),
    [
        ({"decode": 30, "oversubscription": 60}, 9e6, "3.00 times as long, mostly for a free"),
        ({"decode": 30, "storage": 60}, 0.0, "3.00 times as long"),
        ({"decode": 90}, 9e6, "3.00 times as long"),
        ({"decode": 30, "other": 60}, 9e6, "3.00 times as long when cold"),
    ],
    ids=["other programs", "nothing from storage", "the first decodes more", "a memory map"],
)
def test_a_longer_first_epoch_is_cold_only_where_storage_made_it_longer(
    parts: dict[str, float], storage: float, said: str
) -> None:
    """90 ms against 30."""
    made = {name: ms * MS for name, ms in parts.items()}
    first = Epoch(number=0, batches=9, made_ns=90 * MS, parts_ns=made, storage_bytes=storage)
    told = title(epoch_batches([first, epoch(1, 30 * MS, 0)]))
    assert said in told
    assert told.endswith("cold") is said.endswith("cold")


def test_colours_of_parts_are_those_of_the_palette() -> None:
    figure = stall_parts({"copy": np.array([MS])}, numbers=(0,))
    assert figure.data[0].marker.color == palette.category("memory").colour
