"""A Run as a scene for the timeline, and what a stretch of it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtraError, RunError
from workbench.pages.timeline.labels import Labels
from workbench.pages.timeline.scene import Counter, Scene, Track
from workbench.run.breakdowns import device_label, whose

if TYPE_CHECKING:
    from workbench.pages.timeline.static import StaticTimeline
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run
    from workbench.widgets.timeline import Timeline

MOST_RANKS = 8
"""Of so many ranks a timeline shows everything; more are asked for by name."""


def timeline(
    run: Run,
    *,
    ranks: Sequence[int] | None = None,
    static: bool | None = None,
    most_bytes: int | None = None,
) -> Timeline | StaticTimeline:
    """The widget, or the static page where a widget is not asked for or cannot be had."""
    from workbench.pages.timeline.static import NOTEBOOK_BYTES, StaticTimeline, check_bytes

    size = NOTEBOOK_BYTES if most_bytes is None else check_bytes(most_bytes)
    if static is not True:
        try:
            from workbench.widgets.timeline import Timeline, headless
        except MissingExtraError:
            if static is False:
                raise
        else:
            if static is False or not headless():
                return Timeline(run, ranks=ranks, most_bytes=size)
    return StaticTimeline(scene=scene_of(run, ranks), most_bytes=size)


def scene_of(run: Run, ranks: Sequence[int] | None = None) -> Scene:
    """Everything that the timeline of a Run shows.

    Args:
        run: The Run.
        ranks: Numbers of the ranks to stack; by default the first eight.
    """
    shown = chosen(run, ranks)
    labels = Labels()
    tracks: list[Track] = []
    counters: list[Counter] = []
    notes: list[str] = []
    moves = _moves(run, shown, notes)
    for place, (rank, move) in enumerate(zip(shown, moves, strict=True)):
        prefix = whose(run, rank).replace(", ", " · ")
        tracks += _tracks(rank, labels, prefix, place, move)
        counters += _counters(run, rank, prefix, place, move)
        if rank is run.ranks[0] and run.loader_records is not None:
            tracks += _loader(run, labels, place, move)
        notes += [f"{prefix}{note}" for note in _doubts(rank)]
        if run.job is not None:
            run.job.rest(rank)
    if len(shown) < len(run.ranks):
        notes.append(f"{len(shown)} of {len(run.ranks)} ranks are shown: timeline(ranks=[…]).")
    bounds = [(int(t.start.min()), int((t.start + t.dur).max())) for t in tracks if len(t)]
    return Scene(
        title=run.name,
        tracks=tuple(track for track in tracks if len(track)),
        counters=tuple(counters),
        labels=labels,
        start=min((low for low, _ in bounds), default=0),
        end=max((high for _, high in bounds), default=0),
        ranks=tuple(whose(run, rank).removesuffix(", ") for rank in shown),
        moves=tuple(moves),
        notes=tuple(notes),
    )


def chosen(run: Run, ranks: Sequence[int] | None) -> tuple[RankAnalysis, ...]:
    """The ranks that a timeline shows."""
    if ranks is None:
        return run.ranks[:MOST_RANKS]
    if not ranks:
        raise RunError("ranks=[] shows nothing: name at least one rank, or leave it out.")
    return tuple(run.rank(number) for number in dict.fromkeys(ranks))


def _moves(run: Run, shown: Sequence[RankAnalysis], notes: list[str]) -> list[int]:
    """What to add to each rank's times, so that the first one's stay as they are."""
    if run.job is None or len(shown) == 1:
        return [0] * len(shown)
    add = [run.job.clock.add_ns[run.ranks.index(rank)] for rank in shown]
    if any(each is None for each in add):
        notes.append(
            "The clocks of these ranks cannot be compared: what is not tied to the first rank "
            "begins at its own first event."
        )
    zero = add[0] or 0
    return [0 if each is None else each - zero for each in add]


def _tracks(
    rank: RankAnalysis, labels: Labels, prefix: str, place: int, move: int
) -> Iterator[Track]:
    from workbench.analysis.collectives import HOST
    from workbench.pages.timeline import device as devices
    from workbench.pages.timeline import host

    group = f"{prefix}Host"
    names = {d: f"{prefix}{device_label(rank, d)}" for d in rank.device_indices}
    where: dict[str, Any] = {"rank": place, "move": move}
    if rank.steps is not None:
        top = prefix.removesuffix(" · ")
        yield host.steps_track(rank.steps, labels, group=top, **where)
    spoken = []
    if rank.collectives is not None and len(rank.collectives):
        groups = {HOST: f"{prefix}Communication", **names}
        made = devices.communication_tracks(rank.collectives, labels, groups=groups, **where)
        spoken = list(made)
    for number, name in names.items():
        offset = move + rank.launches.clock_offset.get(number, 0)
        if number in rank.recorded_idle:
            yield devices.idle_track(
                rank.recorded_idle[number],
                rank.trace,
                labels,
                group=name,
                rank=place,
                move=offset,
            )
        yield from devices.stream_tracks(
            rank.trace, number, rank.launches, labels, group=name, rank=place, move=offset
        )
        ranges = devices.ranges_track(
            rank.trace, number, labels, group=name, rank=place, move=offset
        )
        if ranges is not None:
            yield ranges
    yield from spoken
    if not names and rank.window is not None:
        yield host.loop_track(rank.trace, rank.window, rank.steps, labels, group, place, move)
    yield from host.thread_tracks(rank.trace, rank.steps, labels, group=group, **where)


def _loader(run: Run, labels: Labels, place: int, move: int) -> Iterator[Track]:
    from workbench.pages.timeline.beside import loader_tracks

    assert run.loader_records is not None
    yield from loader_tracks(run.loader_records.batches, labels, rank=place, move=move)


def _counters(
    run: Run, rank: RankAnalysis, prefix: str, place: int, move: int
) -> Iterator[Counter]:
    from workbench.pages.timeline import beside

    where: dict[str, Any] = {"group": f"{prefix}Memory and counters", "rank": place, "move": move}
    yield from beside.memory_counters(rank.trace.memory, **where)
    yield from beside.trace_counters(rank.trace, **where)
    if rank is run.ranks[0] and run.system is not None:
        yield from beside.system_counters(run.system, **where)


def _doubts(rank: RankAnalysis) -> list[str]:
    """What the failed checks of a trace make of what is drawn."""
    found = []
    if rank.voids("devices"):
        found.append("The work of the device was not recorded.")
    elif rank.voids("idle"):
        found.append("Work of the device is missing: its gaps may be longer than it was idle.")
    elif rank.voids("causes"):
        found.append("The causes of idle time cannot be trusted in this trace.")
    return found
