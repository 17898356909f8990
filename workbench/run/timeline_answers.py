"""What the page of a timeline asks of the trace: a stretch in numbers, and an event in full."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.pages.escape import visible
from workbench.pages.timeline.labels import KNOWN, NAMES
from workbench.run.breakdowns import device_label, shown_parts, whose
from workbench.run.timeline import chosen, scene_of
from workbench.units import bytes_text, count_text, significant

if TYPE_CHECKING:
    from workbench.analysis.ranges import Range
    from workbench.pages.timeline.scene import Track
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run

MOST_NAMED = 8
LONGEST_TEXT = 2_000
"""Characters of one detail, such as a stack, that are sent."""


class Named(NamedTuple):
    """An event as a value names it."""

    name: str
    lane: str
    rank: int | None


class Answers:
    """The scene of a Run and what can be asked about it; safe to be asked from any thread."""

    def __init__(self, run: Run, ranks: Sequence[int] | None = None) -> None:
        self._run = run
        self._ranks = chosen(run, ranks)
        self._lock = Lock()
        self.scene = scene_of(run, ranks)
        self._ends = np.cumsum([len(track) for track in self.scene.tracks])

    @property
    def ranks(self) -> tuple[RankAnalysis, ...]:
        """Those that the scene shows."""
        return self._ranks

    def span(self, event: int) -> dict[str, int]:
        """When an event of the scene was: ``from`` and ``to``, in ns."""
        track, at = self._place(event)
        start = int(track.start[at])
        return {"from": start, "to": start + int(track.dur[at])}

    def named(self, event: int) -> Named:
        """Name, lane and rank of an event of the scene."""
        track, at = self._place(event)
        name, _ = self.scene.labels.pairs()[int(track.label[at])]
        lane = f"{track.group} · {track.name}" if track.group else track.name
        rank = self._ranks[track.rank].rank if len(self._run.ranks) > 1 else None
        return Named(name=visible(name), lane=visible(lane), rank=rank)

    def summary(self, low: int, high: int) -> dict[str, Any]:
        """The stretch from ``low`` to ``high`` ns of the scene, of every rank that is shown.

        Parts of a device sum to the stretch exactly where all of it lies in the recording.
        """
        with self._lock:
            parts: list[dict[str, Any]] = []
            named: dict[tuple[str, str], list[int]] = {}
            for place, rank in enumerate(self._ranks):
                move = self.scene.moves[place]
                prefix = whose(self._run, rank).replace(", ", " · ")
                parts += _breakdowns(rank, low - move, high - move, prefix)
            device = any(track.kind == "stream" for track in self.scene.tracks)
            for track in self.scene.tracks:
                if track.kind == ("stream" if device else "thread"):
                    _add(named, track, low, high, self.scene.labels.pairs(), top=not device)
            longest = sorted(named.items(), key=lambda each: -each[1][0])[:MOST_NAMED]
            return {
                "breakdowns": parts,
                "longest": [
                    {"name": visible(name), "category": category, "ns": ns, "calls": calls}
                    for (name, category), (ns, calls) in longest
                ],
                "what": "Longest on the device"
                if device
                else "Longest on the host, with what is inside",
                "about": False,
            }

    def details(self, event: int) -> list[tuple[str, str]]:
        """What the trace knows of an event beyond what the page holds."""
        track, at = self._place(event)
        row = int(track.row[at])
        if row < 0:
            return []
        with self._lock:
            return _details(self._ranks[track.rank], row)

    def _place(self, event: int) -> tuple[Track, int]:
        if not 0 <= event < len(self.scene):
            raise IndexError(event)
        number = int(np.searchsorted(self._ends, event, "right"))
        track = self.scene.tracks[number]
        return track, event - int(self._ends[number]) + len(track)


def _breakdowns(rank: RankAnalysis, low: int, high: int, prefix: str) -> list[dict[str, Any]]:
    """Of every device, else of the loop's thread; ``low`` and ``high`` are on the host's clock."""
    from workbench.analysis.ranges import Range

    made = []
    for device in rank.device_indices:
        whole = rank.recordings[device]
        offset = rank.launches.clock_offset.get(device, 0)
        if whole is None:
            continue
        start, end = max(low - offset, whole.start), min(high - offset, whole.end)
        if start < end:
            span = Range(start=start, end=end)
            title = f"{prefix}{device_label(rank, device)}"
            made.append(_breakdown(title, _device_parts(rank, device, span), span.length))
    if not rank.device_indices and rank.window is not None:
        start, end = max(low, rank.window.start), min(high, rank.window.end)
        if start < end:
            from workbench.analysis.host import host_breakdown

            span = Range(start=start, end=end)
            parts = host_breakdown(rank.trace, span, rank.steps)
            made.append(_breakdown(f"{prefix}Host: the loop", parts, span.length))
    return made


def _device_parts(rank: RankAnalysis, device: int, span: Range) -> dict[str, int | None]:
    from workbench.analysis.causes import CAUSES
    from workbench.analysis.device_time import device_time

    time = device_time(rank.trace, device, span)
    idle = rank.recorded_idle[device]
    pieces = idle.pieces
    inside = np.minimum(pieces.end, span.end) - np.maximum(pieces.start, span.start)
    sums = np.bincount(pieces.cause, np.maximum(inside, 0), len(CAUSES))
    causes = {
        cause: None if idle.by_cause[cause] is None else round(float(sums[code]))
        for code, cause in enumerate(CAUSES)
    }
    return {
        "compute": time.compute,
        "exposed_communication": time.exposed_communication,
        "exposed_memory": time.exposed_memory,
        **causes,
    }


def _breakdown(title: str, parts: dict[str, int | None], total: int) -> dict[str, Any]:
    """Work first, then the causes of idle time, longest first; nothing that took no time."""
    shown = [
        {"label": f"idle: {look.label}" if look.idle else look.label, "category": name, "ns": ns}
        for name, ns in shown_parts(parts).items()
        if ns and (look := KNOWN[name])
    ]
    shown.sort(key=lambda part: (KNOWN[str(part["category"])].idle, -int(str(part["ns"]))))
    return {"title": visible(title), "parts": shown, "total": total}


def _add(
    named: dict[tuple[str, str], list[int]],
    track: Track,
    low: int,
    high: int,
    pairs: tuple[tuple[str, int], ...],
    *,
    top: bool,
) -> None:
    end = track.start + track.dur
    here = (track.start < high) & (end > low)
    if top:
        here &= track.depth == 0
    rows = np.flatnonzero(here)
    inside = np.minimum(end[rows], high) - np.maximum(track.start[rows], low)
    label = track.label[rows]
    sums = np.bincount(label, inside, len(pairs))
    calls = np.bincount(label, minlength=len(pairs))
    for code in np.flatnonzero(calls).tolist():
        name, category = pairs[code]
        known = named.setdefault((name, NAMES[category]), [0, 0])
        known[0] += int(sums[code])
        known[1] += int(calls[code])


def _details(rank: RankAnalysis, row: int) -> list[tuple[str, str]]:
    trace, events = rank.trace, rank.trace.events
    made: list[tuple[str, str]] = []
    if (code := int(events.shapes[row])) >= 0:
        made.append(("Shapes", trace.shapes[code]))
    if (code := int(events.types[row])) >= 0:
        made.append(("Types", trace.types[code]))
    if (size := int(events.bytes[row])) >= 0:
        made.append(("Bytes", bytes_text(size)))
        if events.dur[row] > 0 and size and int(events.device[row]) >= 0:
            made.append(("Speed", f"{significant(size / int(events.dur[row]))} GB/s"))
    made += _launched(rank, row)
    if (code := int(events.stack[row])) >= 0:
        made.append(("Stack", trace.stacks[code]))
    return [(term, visible(text[:LONGEST_TEXT])) for term, text in made]


def _launched(rank: RankAnalysis, row: int) -> list[tuple[str, str]]:
    told = rank.trace.launch_configurations
    at = int(np.searchsorted(told.row, row))
    if at >= len(told.row) or int(told.row[at]) != row:
        return []
    made = [("Grid", _extent(told.grid[at])), ("Block", _extent(told.block[at]))]
    for term, value in (
        ("Registers", told.registers[at]),
        ("Shared memory", told.shared_memory[at]),
    ):
        if int(value) >= 0:
            said = bytes_text(int(value)) if term == "Shared memory" else count_text(int(value))
            made.append((term, said))
    if told.occupancy[at] > 0:  # 0 and NaN: not estimated
        made.append(("Occupancy, estimated", f"{told.occupancy[at]:.0f} %"))
    return [(term, said) for term, said in made if said]


def _extent(values: Any) -> str:
    return " × ".join(str(int(v)) for v in values) if (np.asarray(values) >= 0).all() else ""
