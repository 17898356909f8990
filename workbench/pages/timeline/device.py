"""A device's tracks: its idle gaps by cause, its streams, the ranges mirrored to it."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.causes import CAUSES
from workbench.analysis.collectives import HOST, Collectives
from workbench.analysis.idle import Idle
from workbench.analysis.launches import Launches
from workbench.analysis.steps import step_codes
from workbench.figures.palette import category
from workbench.pages.timeline.labels import Labels
from workbench.pages.timeline.scene import Track, track
from workbench.trace.table import DEVICE_WORK, Kind, Trace
from workbench.units import bytes_text, time_text


def idle_track(
    idle: Idle, trace: Trace, labels: Labels, *, group: str, rank: int, move: int
) -> Track:
    """Every stretch in which no stream of the device works, cut where its cause changes.

    A piece is called by its cause and by the operator or range that the host was in meanwhile; it
    leads to that record and to the work that ended the gap.
    """
    pieces = idle.pieces
    host = np.where(pieces.host >= 0, pieces.host, pieces.operator)
    name = np.where(host >= 0, trace.events.name[np.maximum(host, 0)], -1).astype(np.int64)
    pair = (name + 1) * len(CAUSES) + pieces.cause
    seen, where = np.unique(pair, return_inverse=True)
    codes = np.array([_gap_label(int(both), trace, labels) for both in seen], np.int32)
    return track(
        "idle",
        "idle, by cause",
        group,
        rank,
        pieces.start + move,
        np.asarray(pieces.length, np.int64),
        codes[where.reshape(-1)] if len(codes) else np.empty(0, np.int32),
        link=pieces.next_work,
        of=host,
        device=idle.device,
        note=_uncertain(idle.uncertainty),
    )


def _gap_label(both: int, trace: Trace, labels: Labels) -> int:
    name, cause = both // len(CAUSES) - 1, CAUSES[both % len(CAUSES)]
    said = f"idle: {category(cause).label}"
    return labels.of(said if name < 0 else f"{said} ({trace.names[name]})", cause)


def _uncertain(ns: int) -> str:
    return f"the device's clock was moved by {time_text(ns)} to the host's" if ns else ""


def stream_tracks(
    trace: Trace,
    device: int,
    launches: Launches,
    labels: Labels,
    *,
    group: str,
    rank: int,
    move: int,
) -> Iterator[Track]:
    """Kernels, copies and sets by stream, the busiest stream first."""
    events = trace.events
    rows = events.rows(*DEVICE_WORK)
    rows = rows[events.device[rows] == device]
    streams, where = np.unique(events.stream[rows], return_inverse=True)
    busy = np.bincount(where.reshape(-1), events.dur[rows], len(streams))
    for at in np.argsort(-busy, kind="stable").tolist():
        here = rows[where.reshape(-1) == at]
        yield track(
            "stream",
            f"stream {streams[at]}" if streams[at] >= 0 else "stream without a number",
            group,
            rank,
            events.ts[here] + move,
            events.dur[here],
            labels.of_events(trace, here),
            row=here,
            link=launches.launch[here],
            device=device,
        )


def ranges_track(
    trace: Trace, device: int, labels: Labels, *, group: str, rank: int, move: int
) -> Track | None:
    """Ranges that the profiler mirrors to the device, without the steps' own."""
    events = trace.events
    rows = events.rows(Kind.DEVICE_ANNOTATION)
    marks = step_codes(trace)
    rows = rows[(events.device[rows] == device) & ~np.isin(events.name[rows], marks)]
    if not len(rows):
        return None
    return track(
        "ranges",
        "ranges",
        group,
        rank,
        events.ts[rows] + move,
        events.dur[rows],
        labels.of_events(trace, rows),
        row=rows,
        device=device,
    )


def communication_tracks(
    found: Collectives, labels: Labels, *, groups: dict[int, str], rank: int, move: int
) -> Iterator[Track]:
    """Collectives by device; ``HOST`` are those of the host's own backends."""
    for device in np.unique(found.device).tolist():
        here: NDArray[np.intp] = np.flatnonzero(found.device == device)
        codes = [labels.of(_collective(found, int(at)), "communication") for at in here]
        yield track(
            "communication",
            "collectives",
            groups.get(device, groups[HOST]),
            rank,
            found.start[here] + found.clock[here] + move,
            found.end[here] - found.start[here],
            np.array(codes, np.int32),
            device=int(device),
        )


def _collective(found: Collectives, at: int) -> str:
    call = found.calls[at]
    size = "" if call.bytes is None else f" {bytes_text(call.bytes)}"
    group = f", group {call.group}" if call.group else ""
    return f"{call.shown_kind.replace('_', ' ')}{size}{group}"
