"""The host's tracks: steps, the loop's own time, threads with everything nested in them."""

from collections.abc import Iterator

import numpy as np

from workbench.analysis.host import claimed_spans
from workbench.analysis.ranges import Range
from workbench.analysis.steps import Steps, step_codes
from workbench.pages.timeline.labels import Labels
from workbench.pages.timeline.scene import Track, track
from workbench.trace.table import DEVICE_WORK, Kind, Trace

NOT_HOST = (*DEVICE_WORK, Kind.DEVICE_ANNOTATION, Kind.SYNC)


def steps_track(steps: Steps, labels: Labels, *, group: str, rank: int, move: int) -> Track:
    """The complete steps of the loop."""
    codes = [labels.of(f"step {number}", "step") for number in steps.numbers]
    return track(
        "steps",
        "Steps",
        group,
        rank,
        steps.start + move,
        steps.end - steps.start,
        np.array(codes, np.int32),
    )


def loop_track(  # noqa: PLR0917
    trace: Trace,
    window: Range,
    steps: Steps | None,
    labels: Labels,
    group: str,
    rank: int,
    move: int,
) -> Track:
    """Where the loop's thread spends its time, each instant once; for traces without a device."""
    claimed = claimed_spans(trace, window, steps)
    codes = [np.full(len(spans.start), labels.of(_said(p), p)) for p, spans in claimed.items()]
    start = np.concatenate([spans.start for spans in claimed.values()])
    end = np.concatenate([spans.end for spans in claimed.values()])
    code = np.concatenate(codes)
    return track("loop", "Loop, by part", group, rank, start + move, end - start, code)


def thread_tracks(
    trace: Trace, steps: Steps | None, labels: Labels, *, group: str, rank: int, move: int
) -> Iterator[Track]:
    """One track a thread: the loop's first, then by how much was recorded on it."""
    events = trace.events
    rows = np.flatnonzero(~np.isin(events.kind, NOT_HOST))
    marks = step_codes(trace)
    rows = rows[~np.isin(events.name[rows], marks)]
    lane = events.lane[rows]
    counts = np.bincount(lane, minlength=len(trace.lanes))
    order = np.argsort(-counts, kind="stable").tolist()
    if steps is not None and steps.lane in order:
        order.remove(steps.lane)
        order.insert(0, steps.lane)
    for number in order:
        if counts[number]:
            here = rows[lane == number]
            yield track(
                "thread",
                _thread(trace, number, loop=steps is not None and number == steps.lane),
                group,
                rank,
                events.ts[here] + move,
                events.dur[here],
                labels.of_events(trace, here),
                row=here,
                shape=labels.shapes_of(trace, here),
            )


def _thread(trace: Trace, number: int, *, loop: bool) -> str:
    lane = trace.lanes[number]
    name = lane.thread or f"thread {lane.tid}"
    return f"{name}, the loop" if loop else name


def _said(part: str) -> str:
    return part.replace("_", " ")
