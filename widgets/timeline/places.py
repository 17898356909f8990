"""Where on a timeline a finding is best seen: a gap, an operator, a collective, or a step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.pages.timeline.labels import NAMES
from workbench.pages.timeline.scene import Scene, Track, TrackKind

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.run.rank import RankAnalysis

Numbers = NDArray[np.int64]
ROOM = 1.5
"""Shown on each side of an event, in its own lengths: enough to see what it lies between."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A stretch of a scene in ns of its clock, and the event in it that is meant."""

    start: int
    end: int
    event: int = -1
    """Its number in the scene; -1: the stretch itself is meant."""


@dataclass(frozen=True)
class Sought:
    """Events of some tracks: of some categories, or whose names hold a word."""

    kinds: tuple[TrackKind, ...]
    categories: frozenset[str] = frozenset()
    word: str = ""


def _gap(*causes: str) -> Sought:
    return Sought(("idle",), frozenset(causes))


def _host(*categories: str) -> tuple[Sought, ...]:
    """What the host's threads recorded; the loop's parts where they recorded nothing of it."""
    return tuple(Sought((kind,), frozenset(categories)) for kind in ("thread", "loop"))


def _work(*categories: str) -> Sought:
    return Sought(("stream",), frozenset(categories))


_CODE = ("host_python", "host_other")
_MATRIX = (_work("compute"), *(Sought(("thread",), word=w) for w in ("mm", "linear", "conv")))
_COLLECTIVE = (Sought(("communication",)), *_host("communication"))
_INPUT = (_gap("input"), *_host("input"))

PLACES: dict[str, tuple[Sought, ...]] = {
    **dict.fromkeys(("WB101", "WB102", "WB103", "WB104", "WB105", "WB106"), _INPUT),
    "WB107": (_work("memory"), *_INPUT),
    "WB201": (_gap("launch", "host_operators", *_CODE), *_host("host_operators")),
    "WB202": (_gap("kernel_gap"),),
    "WB203": (_gap("synchronization"), *_host("synchronization")),
    "WB204": _host("synchronization"),
    "WB205": _host("optimizer"),
    "WB206": (_gap("compilation"), *_host("compilation")),
    "WB207": (_gap("compilation"), *_host("compilation")),
    "WB208": (),
    "WB209": (_gap(*_CODE), *_host(*_CODE)),
    "WB210": (_gap("garbage_collection"), *_host("garbage_collection")),
    "WB211": (_gap("kernel_loading"), *_host("kernel_loading")),
    "WB212": (),
    "WB301": _MATRIX,
    "WB302": _MATRIX,
    "WB303": _MATRIX,
    "WB304": (Sought(("thread",), word="aten::_to_copy"), Sought(("thread",), word="aten::to")),
    "WB401": _COLLECTIVE,
    "WB402": (),
    "WB404": _COLLECTIVE,
    "WB502": (_gap("allocation"), *_host("allocation")),
    "WB903": (_gap("profiler"), *_host("profiler")),
}
"""By the code of a finding, what is looked for, the best first; nothing: the longest step is meant.
A finding that is not here speaks of the whole Run, and has no place."""


def has_place(code: str) -> bool:
    """Whether a finding speaks of something that a timeline can show."""
    return code in PLACES


def place_of(scene: Scene, ranks: "tuple[RankAnalysis, ...]", finding: "Finding") -> Place | None:
    """The place of a finding; ``None`` where the trace holds none.

    In the step that holds most of what the finding speaks of, and of the steps that count where
    one of them has any, the longest such event.

    Args:
        scene: Of the Run that the finding is about.
        ranks: The ranks that the scene shows, in their order.
        finding: The finding.
    """
    if finding.code not in PLACES:
        return None
    rank = next((at for at, each in enumerate(ranks) if each.rank == finding.rank), None)
    if len(ranks) == 1:
        rank = 0
    for sought in PLACES[finding.code]:
        found = _Found.of(scene, sought, rank, finding.device)
        if len(found.start):
            return _around(scene, found, _best(scene, ranks, found))
    return _longest_step(scene, ranks, rank)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """Events of a scene: their numbers in it, their times, and their ranks' places."""

    event: Numbers
    start: Numbers
    dur: Numbers
    rank: Numbers

    @classmethod
    def of(cls, scene: Scene, sought: Sought, rank: int | None, device: int | None) -> "_Found":
        tracks = [
            (first, track)
            for first, track in _numbered(scene)
            if track.kind in sought.kinds and rank in (None, track.rank)
        ]
        if any(track.device == device for _, track in tracks):
            tracks = [(first, track) for first, track in tracks if track.device == device]
        wanted = np.array(
            [
                (not sought.categories or NAMES[category] in sought.categories)
                and sought.word in name
                for name, category in scene.labels.pairs()
            ],
            dtype=np.bool_,
        )
        parts: list[tuple[Any, ...]] = [((), (), (), ())]
        for first, track in tracks:
            rows = np.flatnonzero(wanted[track.label])
            ranks = np.full(len(rows), track.rank)
            parts.append((first + rows, track.start[rows], track.dur[rows], ranks))
        event, start, dur, own = (
            np.concatenate([np.asarray(part[at], np.int64) for part in parts]) for at in range(4)
        )
        return cls(event=event, start=start, dur=dur, rank=own)


def _numbered(scene: Scene) -> Iterator[tuple[int, Track]]:
    """Every track with the number of its first event."""
    first = 0
    for track in scene.tracks:
        yield first, track
        first += len(track)


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """The steps of one rank on the clock of the scene, and which of them count."""

    start: Numbers
    dur: Numbers
    counts: NDArray[np.bool_]

    @classmethod
    def of(cls, scene: Scene, ranks: "tuple[RankAnalysis, ...]", rank: int) -> "_Steps | None":
        own = next((t for t in scene.tracks if t.kind == "steps" and t.rank == rank), None)
        if own is None:
            return None
        steps = ranks[rank].steps
        first = 0 if steps is None else steps.first_steady
        return cls(start=own.start, dur=own.dur, counts=np.arange(len(own)) >= first)

    def holding(self, start: Numbers, dur: Numbers) -> Numbers:
        """The step that holds the middle of each event, or -1."""
        middle = start + dur // 2
        at = np.searchsorted(self.start, middle, "right") - 1
        inside = (at >= 0) & (middle <= self.start[at] + self.dur[at])
        return np.where(inside, at, -1)


def _best(scene: Scene, ranks: "tuple[RankAnalysis, ...]", found: _Found) -> int:
    """The longest of what was found, in the step that has most of it."""
    best, most = int(np.argmax(found.dur)), (False, -1.0)
    for rank in np.unique(found.rank).tolist():
        steps = _Steps.of(scene, ranks, rank)
        if steps is None:
            continue
        mine = np.flatnonzero(found.rank == rank)
        at = steps.holding(found.start[mine], found.dur[mine])
        inside = at >= 0
        if not inside.any():
            continue
        sums = np.bincount(at[inside], found.dur[mine][inside], len(steps.start))
        counting = np.where(steps.counts, sums, 0.0)
        counts = bool(counting.any())
        step = int(np.argmax(counting if counts else sums))
        if (counts, float(sums[step])) > most:
            most = (counts, float(sums[step]))
            here = mine[at == step]
            best = int(here[np.argmax(found.dur[here])])
    return best


def _around(scene: Scene, found: _Found, at: int) -> Place:
    """A found event with what lies around it."""
    start, dur = int(found.start[at]), max(int(found.dur[at]), 1)
    room = round(ROOM * dur)
    return Place(
        start=max(scene.start, start - room),
        end=min(scene.end, start + dur + room),
        event=int(found.event[at]),
    )


def _longest_step(
    scene: Scene, ranks: "tuple[RankAnalysis, ...]", rank: int | None
) -> Place | None:
    steps = _Steps.of(scene, ranks, rank or 0)
    if steps is None:
        return None
    step = int(np.argmax(np.where(steps.counts, steps.dur, -1)))
    return Place(start=int(steps.start[step]), end=int(steps.start[step] + steps.dur[step]))
