"""A thread looked at around a few gaps shows what the whole thread shows there.

A main thread hands over to an autograd thread, records nest, cross by a little and touch, and user
ranges reach across them; every span is compared instant by instant with the whole recording.
"""

import random

import numpy as np
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.evidence import gather_evidence
from workbench.analysis.launches import join_launches
from workbench.analysis.ranges import Range
from workbench.analysis.threads import Timeline

MAIN, AUTOGRAD, SENDER = 100, 200, 300
LENGTH_US = 400


def written(draw: random.Random) -> Kineto:
    """A recording of 400 us whose three threads do anything."""
    made = Kineto(gpu=True)
    made.launched("k", call=(5, 5), kernel=(12, 10), correlation=1)
    made.op("aten::mm", 1, 20, tid=MAIN, **{"Sequence number": 1})
    made.op("aten::to", 30, 40, tid=SENDER)
    for _ in range(12):
        ts, dur = draw.randint(0, LENGTH_US), draw.randint(1, 60)
        tid = draw.choice((MAIN, AUTOGRAD, SENDER))
        draw.choice((made.op, made.range))("anything", ts, dur, tid=tid)
    for ts in sorted(draw.sample(range(20, LENGTH_US), 8)):
        made.op(
            "autograd::engine::evaluate_function: MmBackward0",
            ts,
            draw.randint(1, 20),
            tid=AUTOGRAD,
            **{"Sequence number": 1, "Fwd thread id": 1},
        )
    return made


def shown(timeline: Timeline, at: np.ndarray) -> list[list[int]]:
    """The deciding record and range at each instant, and those below."""
    piece = timeline.at(at)
    found = [timeline.position[piece].tolist(), timeline.range[piece].tolist()]
    return found if timeline.under is None else found + shown(timeline.under, at)


@pytest.mark.parametrize("seed", range(40))
def test_a_span_of_a_thread_agrees_with_the_whole(seed: int) -> None:
    draw = random.Random(seed)
    trace = columns(written(draw))
    threads = gather_evidence(trace, join_launches(trace), None).threads
    lanes = [n for n, lane in enumerate(trace.lanes) if lane.tid in {"100", "200", "300"}]
    assert len(lanes) == 3
    for _ in range(8):
        first, last = sorted(draw.sample(range(LENGTH_US + 80), 2))
        span = Range(start=first * US, end=last * US)
        at = np.arange(span.start, span.end + 1, US // 4, dtype=np.int64)
        for lane in lanes:
            for ask in (threads.timeline, threads.joint):
                part = ask(lane, span)
                assert part.start[0] == span.start
                assert part.start[-1] <= span.end, "nothing beyond the span is held"
                assert shown(part, at) == shown(ask(lane), at)
