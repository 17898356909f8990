"""A scene made small enough for a notebook: short neighbours drawn as one, and said so.

Nothing is left out: an event that stands for several tells how many, and how much of it is no work.
A gap is only drawn over where it is shorter than the limit that the timeline tells.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workbench.pages.timeline.encode import pack
from workbench.pages.timeline.labels import KNOWN, NAMES
from workbench.pages.timeline.scene import Scene, Track
from workbench.units import count_text, time_text

SHARE = {"thread": 8, "ranges": 4, "loader": 4}
"""So many times as long may be what is drawn together on the host: devices keep more detail."""
ROOM = 0.92
"""Part of the room that a try aims at: names take theirs, too."""
WIDEST = 4
"""So many limits long is what is drawn as one at most."""
EXACT = 0.25
"""How near, in powers of two, the limit comes to the least one."""
_TRIES = 5

Many = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Shortened:
    """A packed scene and what it cost in detail."""

    scene: Scene
    data: bytes
    limit_ns: int
    """Neighbours shorter than this were drawn together on devices; 0: nothing was."""
    of: int
    """How many events were recorded."""


def shorten(scene: Scene, most_bytes: int) -> Shortened:
    """The scene in at most so many compressed bytes, with as much detail as fits."""
    whole = pack(scene)
    if len(whole) <= most_bytes:
        return Shortened(scene=scene, data=whole, limit_ns=0, of=len(scene))
    scene = _without_shapes(scene)
    whole = pack(scene)
    if len(whole) <= most_bytes:
        return Shortened(scene=scene, data=whole, limit_ns=0, of=len(scene))
    totals = np.zeros(len(scene.labels), np.int64)
    for each in scene.tracks:
        totals += np.bincount(each.label, minlength=len(totals))
    wanted = len(scene) * most_bytes / len(whole) * ROOM
    for _ in range(_TRIES):
        limit = _limit_for(scene, wanted)
        made = _merged(scene, limit)
        data = pack(made, totals=totals)
        if len(data) <= most_bytes:
            break
        wanted *= most_bytes / len(data) * ROOM
    return Shortened(scene=made, data=data, limit_ns=limit, of=len(scene))


def _limit_for(scene: Scene, wanted: float) -> int:
    """The least limit with which no more than the wanted number of events is left."""
    low, high = 0.0, float(np.log2(max(scene.end - scene.start, 2)))
    while high - low > EXACT:
        middle = (low + high) / 2
        if len(_merged(scene, int(2**middle))) <= wanted:
            high = middle
        else:
            low = middle
    return int(2**high)


def _without_shapes(scene: Scene) -> Scene:
    if all(track.shape is None for track in scene.tracks):
        return scene
    note = "Shapes of inputs were left out to save room."
    tracks = tuple(replace(track, shape=None) for track in scene.tracks)
    return replace(scene, tracks=tracks, notes=(*scene.notes, note))


def _merged(scene: Scene, limit: int) -> Scene:
    labels = scene.labels
    category = np.array([code for _, code in labels.pairs()], np.int64)
    several: dict[int, int] = {}

    def label_of(code: int) -> int:
        if code not in several:
            said = KNOWN[NAMES[code]].label
            several[code] = labels.of(f"several: {said}", NAMES[code])
        return several[code]

    tracks = tuple(
        merged(each, limit * SHARE.get(each.kind, 1), category, label_of)
        if each.kind not in ("steps", "communication")
        else each
        for each in scene.tracks
    )
    note = (
        f"Drawn from {count_text(sum(map(len, tracks)))} of {count_text(len(scene))} events: "
        f"neighbours shorter than {time_text(limit)} on a device, {time_text(limit * 8)} on the "
        "host, are drawn together."
    )
    return replace(scene, tracks=tracks, notes=(note, *scene.notes))


def merged(track: Track, limit: int, category: Many, label_of: Callable[[int], int]) -> Track:
    """Neighbours of one row and category, shorter than ``limit`` and no further apart, as one."""
    if len(track) < 2:
        return track
    end = track.start + track.dur
    kind = category[track.label]
    short = track.dur < limit
    cell = track.start // (limit * WIDEST)
    joins = np.zeros(len(track), bool)
    joins[1:] = (
        short[1:]
        & short[:-1]
        & (np.diff(track.depth) == 0)
        & (np.diff(cell) == 0)
        & (kind[1:] == kind[:-1])
        & (track.start[1:] - end[:-1] < limit)
    )
    first = np.flatnonzero(~joins)
    if len(first) == len(track):
        return track
    last = np.append(first[1:], len(track)) - 1
    count = last - first + 1
    dur = end[last] - track.start[first]
    alone = count == 1
    named = np.zeros(int(kind.max()) + 1, np.int32)
    for code in np.flatnonzero(np.bincount(kind)).tolist():
        named[code] = label_of(code)
    together = named[kind[first]]

    def kept(values: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.where(alone, values[first], -1).astype(np.int32)

    return replace(
        track,
        start=track.start[first],
        dur=dur,
        depth=track.depth[first],
        label=np.where(alone, track.label[first], together).astype(np.int32),
        row=kept(track.row),
        link=kept(track.link),
        of=kept(track.of),
        count=count.astype(np.int32),
        idle=dur - np.add.reduceat(track.dur, first),
    )
