"""Pieces partition the idle time, agree with asking every microsecond, and keep evidence."""

import random

import numpy as np
import pytest

from tests.analysis.idle_cases import causes, explained, gap
from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.causes import CAUSES
from workbench.analysis.devices import device_indices, work_rows
from workbench.analysis.evidence import gather_evidence
from workbench.analysis.idle import attribute_idle
from workbench.analysis.intervals import gaps, union
from workbench.analysis.kept_pieces import IdlePieces
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range

Record = tuple[float, float, str]
KINDS = ("input", "allocation", "compilation", "garbage_collection", "host_operators")


def nested(draw: random.Random, start: int, end: int, depth: int = 0) -> list[Record]:
    """Random records that lie beside or inside each other in [start, end)."""
    found: list[Record] = []
    at = start
    while depth < 4 and end - at > 4 and draw.random() < 0.8:
        first = draw.randint(at, end - 3)
        last = draw.randint(first + 2, end)
        found.append((first, last, draw.choice(KINDS)))
        found += nested(draw, first, last, depth + 1)
        at = last
    return found


def write(made: Kineto, record: Record) -> None:
    start, end, kind = record
    length = end - start
    match kind:
        case "input":
            made.loader(start, length)
        case "allocation":
            made.runtime("cudaMalloc", start, length, correlation=9_000)
        case "compilation":
            made.op("dynamo", start, length)
        case "garbage_collection":
            made.range("workbench.gc", start, length)
        case _:
            made.op("aten::mm", start, length)


def asked_every_microsecond(records: list[Record], start: int, end: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for at in range(start, end):
        here = {kind for first, last, kind in records if first <= at < last}
        cause = next((kind for kind in KINDS if kind in here), "host_other")
        found[cause] = found.get(cause, 0) + 1
    return found


@pytest.mark.parametrize("seed", range(60))
def test_pieces_agree_with_asking_every_microsecond(seed: int) -> None:
    """A gap [100, 400) before the call; records may begin before it and end after it."""
    records = nested(random.Random(seed), 50, 400)
    made = gap(call=(400, 10), until=420)
    for record in records:
        write(made, record)
    idle = explained(made)
    expected = asked_every_microsecond(records, 100, 400)
    assert causes(idle) == expected | {"launch": 20}


@pytest.mark.parametrize("seed", range(40))
def test_pieces_partition_the_gaps_of_every_device(seed: int) -> None:
    """Random launches by several threads to two devices, some of them without a launch record."""
    draw = random.Random(seed)
    made = Kineto(gpu=True)
    for number in range(1, 60):
        tid, device = draw.choice((100, 200)), draw.choice((0, 1))
        ts = draw.randint(0, 2_000)
        delay = draw.choice((3, 10, 400))
        if draw.random() < 0.8:
            made.runtime("cudaLaunchKernel", ts, draw.randint(1, 9), correlation=number, tid=tid)
        stream = draw.choice((7, 8))
        made.kernel(
            "k", ts + delay, draw.randint(1, 60), correlation=number, stream=stream, device=device
        )
    for tid in (100, 200):
        for record in nested(draw, 0, 2_400):
            made.op("aten::mm", record[0], record[1] - record[0], tid=tid)
    made.runtime("cudaStreamSynchronize", 900, 200, correlation=9_000)
    trace = columns(made)
    launches = join_launches(trace)
    evidence = gather_evidence(trace, launches, None)
    for device in device_indices(trace):
        rows = work_rows(trace, device)
        busy = union(trace.events.ts[rows], trace.events.end[rows])
        span = Range(start=draw.randint(0, 900) * US, end=draw.randint(1_000, 3_000) * US)
        pieces = attribute_idle(trace, device, span, None, launches, evidence=evidence).pieces
        idle = union(pieces.start, pieces.end)
        wanted = gaps(busy, span.start, span.end)
        assert np.array_equal(idle.start, wanted.start)
        assert np.array_equal(idle.end, wanted.end)
        assert (pieces.start[1:] >= pieces.end[:-1]).all(), "no two pieces overlap"


def test_a_range_that_cuts_a_gap_keeps_what_is_known_of_it() -> None:
    """The gap is [100, 200), queued at 60: the half that the range holds is spacing as well."""
    trace = columns(gap(call=(60, 5)))
    launches = join_launches(trace)
    first = int(trace.events.ts[work_rows(trace, 0)[0]])
    span = Range(start=first + 100 * US, end=first + 130 * US)
    idle = attribute_idle(trace, 0, span, None, launches)
    assert causes(idle) == {"kernel_gap": 30}
    assert idle.largest == 30 * US


def test_after_the_last_work_nobody_knows() -> None:
    trace = columns(gap())
    launches = join_launches(trace)
    end = int(trace.events.end.max())
    idle = attribute_idle(trace, 0, Range(start=end, end=end + 5 * US), None, launches)
    assert causes(idle) == {"unknown": 5}
    assert idle.pieces.next_work.tolist() == [-1]


def test_a_device_that_never_worked_is_idle_throughout() -> None:
    trace = columns(gap())
    idle = attribute_idle(trace, 5, Range(start=0, end=10 * US), None, join_launches(trace))
    assert causes(idle) == {"unknown": 10}


def test_an_empty_trace_and_an_empty_range_have_no_idle_time() -> None:
    trace = columns(Kineto())
    idle = attribute_idle(trace, 0, Range(start=0, end=0), None, join_launches(trace))
    assert (idle.total, idle.gaps, len(idle.pieces)) == (0, 0, 0)
    assert set(idle.by_cause) == set(CAUSES)


def test_first_use_is_marked_in_the_first_complete_step_only() -> None:
    """Both steps call cudaMalloc for 20 us before they launch."""
    made = Kineto(gpu=True)
    for number, ts in ((3, 0), (4, 200)):
        made.step(number, ts, 199)
        made.runtime("cudaMalloc", ts + 60, 20, correlation=50 + number)
        made.launched("k", call=(ts + 10, 5), kernel=(ts + 20, 10), correlation=2 * number)
        made.launched("k", call=(ts + 90, 5), kernel=(ts + 100, 10), correlation=2 * number + 1)
    idle = explained(made)
    assert causes(idle)["allocation"] == 40
    assert idle.first_use == 20 * US
    marked = idle.pieces.first_use
    assert set(idle.pieces.step[marked].tolist()) == {3}


def test_a_piece_belongs_to_the_step_that_launched_the_next_work() -> None:
    """The wait for the loader lies in step 4, whose kernel it delays."""
    made = Kineto(gpu=True)
    made.step(3, 0, 100)
    made.launched("k", call=(10, 5), kernel=(20, 10), correlation=1)
    made.step(4, 100, 100)
    made.loader(105, 40)
    made.launched("k", call=(150, 5), kernel=(160, 10), correlation=2)
    pieces = explained(made).pieces
    assert set(pieces.step.tolist()) == {4}


def test_pieces_name_the_source_line_where_stacks_were_recorded() -> None:
    made = gap()
    made.python("train.py(1): main", 0, 400, ident=1, parent=None)
    made.python("train.py(42): log", 110, 60, ident=2, parent=1)
    trace = columns(made)
    pieces = explained(made).pieces
    lines = [trace.names[trace.events.name[row]] for row in pieces.source if row >= 0]
    assert "train.py(42): log" in lines


def test_pieces_name_the_user_range_where_nothing_else_is_known() -> None:
    made = gap()
    made.range("augment", 90, 80)
    trace = columns(made)
    pieces = explained(made).pieces
    assert trace.names[trace.events.name[pieces.operator[0]]] == "augment"
    assert CAUSES[pieces.cause[0]] == "host_other"


def test_a_piece_may_be_longer_than_four_bytes_hold_beside_short_ones() -> None:
    """Blocks of 30 us and of 3 s, which is more than 2^31 ns, are one column in either order."""
    short, long = Kineto(gpu=True), Kineto(gpu=True)
    for made, pause in ((short, 30), (long, 3_000_000)):
        made.launched("k", call=(0, 5), kernel=(10, 10), correlation=1)
        made.launched("k", call=(pause, 5), kernel=(20 + pause, 10), correlation=2)
    blocks = [explained(made).pieces for made in (short, long)]
    assert [block.time(block.cause >= 0) for block in blocks] == [30 * US, 3_000_000 * US]
    for order in ((0, 1), (1, 0), (0, 1, 0)):
        joined = IdlePieces.joined(blocks[each] for each in order)
        lengths = [ns for each in order for ns in blocks[each].length.tolist()]
        assert joined.length.tolist() == lengths
        assert (joined.end - joined.start).tolist() == lengths


def test_blocks_hold_the_same_pieces_a_few_gaps_at_a_time() -> None:
    """Three gaps of 10, 30 and 20 us; the second is cut at an operator and at its call.

    The kernels are launched while the device works, but the third, whose call is at the gap's end.
    """
    made = Kineto(gpu=True)
    made.launched("k", call=(0, 5), kernel=(100, 10), correlation=1)
    made.launched("k", call=(10, 5), kernel=(120, 10), correlation=2)
    made.op("aten::mm", 140, 5)
    made.launched("k", call=(155, 5), kernel=(160, 10), correlation=3)
    made.launched("k", call=(20, 5), kernel=(190, 10), correlation=4)
    pieces = explained(made).pieces
    assert (pieces.gap_length // US).tolist() == [10, 30, 20]
    assert pieces.gap_pieces.tolist() == [1, 4, 1], "before, in and behind the operator, the call"
    assert (pieces.length // US).tolist() == [10, 10, 5, 10, 5, 20]
    assert (pieces.start - pieces.start[0]).tolist() == [n * US for n in (0, 20, 30, 35, 45, 60)]
    for most in (1, 2, 3, 100):
        blocks = list(pieces.blocks(most))
        assert [len(block.gap_start) for block in blocks] == [
            min(most, 3 - first) for first in range(0, 3, most)
        ]
        for name in ("start", "end", "cause", "next_work", "launch", "operator", "step"):
            joined = np.concatenate([getattr(block, name) for block in blocks])
            assert joined.tolist() == getattr(pieces, name).tolist(), name
