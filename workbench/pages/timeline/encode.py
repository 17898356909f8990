"""A scene as bytes: one JSON header, then columns of whole numbers, each shuffled, all compressed.

Layout before compression::

    b"WBT1"   length of the header as uint32   header (JSON)   columns, one after the other

A column of width w holds all first bytes of its numbers, then all second bytes and so on, little
end first: what changes slowly then lies together and compresses well. Starts are told as the
distance from the end of the event before in the same row, references as the difference to the last
one, so that most numbers are small. ``timeline/decode.js`` is the other side.
"""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.pages.escape import visible
from workbench.pages.timeline.headline import headline
from workbench.pages.timeline.labels import KNOWN, NAMES
from workbench.pages.timeline.scene import Scene, Track

MAGIC = b"WBT1"
LEVEL = 2
"""Of isal: half the time of zlib's fastest, and hardly larger."""

Numbers = NDArray[Any]


def pack(scene: Scene, *, totals: NDArray[np.int64] | None = None) -> bytes:
    """The scene, compressed.

    Args:
        scene: What is drawn.
        totals: How many events of each label were recorded, where the scene holds fewer.
    """
    from isal import igzip

    return bytes(igzip.compress(raw(scene, totals=totals), compresslevel=LEVEL, mtime=0))


def raw(scene: Scene, *, totals: NDArray[np.int64] | None = None) -> bytes:
    """The scene before compression."""
    columns = _columns(scene)
    packed = [shuffled(values) for values in columns.values()]
    header = _header(scene, totals)
    header["columns"] = [
        {"name": name, "width": len(data) // max(len(values), 1), "length": len(values)}
        for (name, values), data in zip(columns.items(), packed, strict=True)
    ]
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    said = text.encode("utf-8", "replace")
    return b"".join((MAGIC, struct.pack("<I", len(said)), said, *packed))


def shuffled(values: Numbers) -> bytes:
    """Non-negative whole numbers in as few bytes as the largest needs, shuffled."""
    largest = int(values.max(initial=0))
    width = next(width for width in (1, 2, 4, 8) if largest < 1 << (8 * width))
    data = np.ascontiguousarray(values, dtype=f"<u{width}")
    return data.view(np.uint8).reshape(len(data), width).T.tobytes()


def zigzag(references: Numbers) -> Numbers:
    """References (-1: none) as small numbers: 0 for none, else 1 and the change since the last."""
    known = references >= 0
    change = np.diff(references[known].astype(np.int64), prepend=0)
    made = np.zeros(len(references), np.int64)
    made[known] = np.where(change >= 0, 2 * change, -2 * change - 1) + 1
    return made


def rows_of(track: Track) -> list[int]:
    """How many events stand in each row of a track."""
    return np.bincount(track.depth).tolist() if len(track) else []


def _columns(scene: Scene) -> dict[str, Numbers]:
    tracks = scene.tracks
    index = _positions(scene)
    columns: dict[str, Numbers] = {
        "start": _all([_distances(track, scene.start) for track in tracks]),
        "dur": _all([track.dur for track in tracks]),
        "label": _all([track.label for track in tracks]),
        "link": zigzag(_all([_to(index, track, track.link) for track in tracks])),
        "of": zigzag(_all([_to(index, track, track.of) for track in tracks])),
    }
    if any(track.shape is not None for track in tracks):
        none = [np.full(len(t), -1) if t.shape is None else t.shape for t in tracks]
        columns["shape"] = _all(none) + 1
    if any(track.count is not None for track in tracks):
        ones = [np.ones(len(t), np.int64) if t.count is None else t.count for t in tracks]
        columns["count"] = _all(ones) - 1
        columns["idle"] = _all(
            [np.zeros(len(t), np.int64) if t.idle is None else t.idle for t in tracks]
        )
    return columns


def _all(parts: list[Numbers]) -> Numbers:
    return np.concatenate([part.astype(np.int64) for part in parts] or [np.zeros(0, np.int64)])


def _distances(track: Track, start: int) -> Numbers:
    """From the end of the event before in the same row; of a row's first from the scene's start."""
    if not len(track):
        return track.start
    before = np.empty(len(track), np.int64)
    before[0] = start
    before[1:] = (track.start + track.dur)[:-1]
    before[1:][np.diff(track.depth) > 0] = start
    return track.start - before


def _positions(scene: Scene) -> dict[int, Numbers]:
    """Per rank, where each row of its event table stands in the scene; -1: not there."""
    found: dict[int, Numbers] = {}
    offset = 0
    for track in scene.tracks:
        known = track.row >= 0
        if known.any():
            most = int(track.row.max()) + 1
            index = found.get(track.rank, np.empty(0, np.int32))
            if most > len(index):
                index = np.concatenate((index, np.full(most - len(index), -1, np.int32)))
            index[track.row[known]] = offset + np.flatnonzero(known)
            found[track.rank] = index
        offset += len(track)
    return found


def _to(index: dict[int, Numbers], track: Track, rows: Numbers) -> Numbers:
    places = index.get(track.rank)
    if places is None or not len(places):
        return np.full(len(rows), -1, np.int64)
    inside = (rows >= 0) & (rows < len(places))
    return np.where(inside, places[np.where(inside, rows, 0)], -1)


def _header(scene: Scene, totals: NDArray[np.int64] | None) -> dict[str, Any]:
    pairs = scene.labels.pairs()
    names = {name: at for at, name in enumerate(dict.fromkeys(name for name, _ in pairs))}
    return {
        "title": visible(scene.title),
        "headline": visible(headline(scene)),
        "start": scene.start,
        "end": scene.end,
        "ranks": [visible(name) for name in scene.ranks],
        "notes": [visible(note) for note in scene.notes],
        "names": [visible(name) for name in names],
        "labels": [number for name, category in pairs for number in (names[name], category)],
        "shapes": list(scene.labels.shapes())
        if any(t.shape is not None for t in scene.tracks)
        else [],
        "totals": None if totals is None else totals.tolist(),
        "categories": categories(),
        "tracks": [
            {
                "kind": track.kind,
                "name": visible(track.name),
                "group": visible(track.group),
                "rank": track.rank,
                "device": track.device,
                "note": track.note,
                "rows": rows_of(track),
            }
            for track in scene.tracks
        ],
        "counters": [
            {
                "name": visible(each.name),
                "group": visible(each.group),
                "rank": each.rank,
                "unit": each.unit,
                "at": (np.diff(each.at, prepend=scene.start) // 1000).tolist(),
                "value": [float(f"{value:.5g}") for value in each.value],
            }
            for each in scene.counters
        ],
    }


def categories() -> list[dict[str, Any]]:
    """The palette in the order of the codes that labels carry."""
    return [
        {
            "name": name,
            "label": KNOWN[name].label,
            "colour": KNOWN[name].colour,
            "hatched": KNOWN[name].hatched,
            "idle": KNOWN[name].idle,
            "waits": KNOWN[name].waits,
        }
        for name in NAMES
    ]
