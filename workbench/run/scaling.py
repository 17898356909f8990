"""Runs of one job with several numbers of ranks: efficiency, where the loss goes, a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import RunError

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.scaling.model import Model
    from workbench.analysis.scaling.points import Point, Share
    from workbench.pages.static import StaticFigure
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run

PREDICTED = (2, 4, 8)
"""Times the largest measured number of ranks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaling:
    """How a job scales: measured sizes, the model fitted to them, and predicted sizes."""

    model: Model
    sizes: tuple[int, ...]
    """The numbers of ranks to predict."""

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """Measured sizes, then predicted ones."""
        measured = tuple(self.model.measured(point) for point in self.model.points)
        return (*measured, *(self.model.predict(size) for size in self.sizes))

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row a size: step, efficiency, its losses, and the range of a prediction."""
        import pandas as pd

        from workbench.run.shown import with_shares

        table = pd.DataFrame(
            [
                {
                    "ranks": share.world_size,
                    "predicted": share.predicted,
                    "step_ns": share.step_ns,
                    "efficiency": share.efficiency,
                    "low": share.low,
                    "high": share.high,
                    "exposed": share.exposed,
                    "wait": share.wait,
                    "slower": share.slower,
                }
                for share in self.shares
            ]
        ).astype({"low": float, "high": float})
        shares = ("efficiency", "low", "high", "exposed", "wait", "slower")
        return with_shares(table, *shares)

    @property
    def figure(self) -> StaticFigure:
        """Efficiency at each number of ranks with the ideal line, and where the loss goes."""
        from workbench.pages.scaling import scaling_chart

        return scaling_chart(self.shares, self.model.error)

    def __repr__(self) -> str:
        from workbench.figures.scaling import headline, subtitle

        lines = [headline(self.shares), subtitle(self.shares, self.model.error)]
        link = self.model.link
        if link is not None:
            from workbench.units import significant, time_text

            rate = "" if link.gb_s is None else f", {significant(link.gb_s)} GB/s"
            lines.append(f"link: {time_text(link.latency_ns)} a hop{rate}")
        shown = self.table[["ranks", "predicted", "efficiency", "exposed", "wait", "slower"]]
        return "\n".join([*lines, shown.round(3).to_string(index=False)])

    def _repr_mimebundle_(self, **more: Any) -> dict[str, Any]:
        return {**self.figure._repr_mimebundle_(**more), "text/plain": repr(self)}


def scaling(
    runs: Sequence[Run],
    *,
    predict: Sequence[int] | None = None,
    kind: Literal["weak", "strong"] | None = None,
) -> Scaling:
    """Put Runs of one job with several numbers of ranks together, and predict larger ones.

    Args:
        runs: One for each number of ranks; of two with the same number the later one counts.
        predict: Numbers of ranks; by default 2, 4 and 8 times the largest measured one.
        kind: weak when every rank keeps its samples, strong when all share the same ones; left
            out, as the Runs show it.

    Raises:
        RunError: fewer than two numbers of ranks, a Run without a step, or samples that only some
            Runs tell.
    """
    from workbench.analysis.scaling.model import fit_model

    _refuse_half_known(runs)
    points = {point.world_size: point for point in map(point_of, runs)}
    model = fit_model(tuple(points.values()), kind)
    if model is None:
        raise RunError(
            f"scaling needs Runs with two numbers of ranks, and these have {sorted(points)}: "
            "profile the same loop with another one, such as "
            "wb.Settings(parallel=Parallel(mode='ddp', world_size=2))."
        )
    largest = max(points)
    sizes = tuple(predict) if predict is not None else tuple(largest * n for n in PREDICTED)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise RunError(f"predict={size!r} must be whole numbers of ranks of at least 1.")
    return Scaling(model=model, sizes=sizes)


def point_of(run: Run) -> Point:
    """What a Run tells of a job at its number of ranks; shares of the trace, times of record."""
    from workbench.analysis.scaling.points import Point

    world = world_size(run)
    steps = [rank.part.step_ns for rank in run.ranks if rank.part.step_ns]
    if not steps:
        raise RunError(f"{run.name!r} has no step: mark the steps, or give a Run that has some.")
    traced = sum(steps) / len(steps)
    step = run.ranks[0].record_step_ns or traced
    parts = [found for rank in run.ranks if (found := _exposed(rank)) is not None]
    several = world > 1 and parts
    return Point(
        world_size=world,
        step_ns=step,
        samples_per_step=_samples(run, world),
        exposed_ns=step * _mean([part[0] for part in parts]) if several else 0.0,
        wait_ns=step * _mean([part[1] for part in parts]) if several else 0.0,
        volumes=_volumes(run.ranks[0], world) if several else (),
        overlap_ns=_overlap(run.ranks[0]) if several else None,
    )


def world_size(run: Run) -> int:
    """How many ranks the job had, by its record, else by the traces, else by their number."""
    said = None if run.record is None else run.record.effective.get("world_size")
    known = said or run.ranks[0].trace.world_size
    return int(known) if known else len(run.ranks)


def _refuse_half_known(runs: Sequence[Run]) -> None:
    """Samples that one Run tells cannot be compared with those that another one does not."""
    silent = [run.name for run in runs if not _told_samples(run)]
    if silent and len(silent) < len(runs):
        raise RunError(
            f"{', '.join(silent)} does not tell how many samples a step has, and the other Runs "
            "do: profile every number of ranks with wb.profile, or give traces alone."
        )


def _told_samples(run: Run) -> float | None:
    return None if run.record is None else run.record.samples_per_step


def _samples(run: Run, world: int) -> float:
    """Of all ranks in a step; where nobody says it, every rank keeps its own."""
    known = _told_samples(run)
    return float(known) if known else float(world)


def _exposed(rank: RankAnalysis) -> tuple[float, float] | None:
    """Shares of the first window in which a rank transfers and waits, with nothing beside."""
    device, window = next(iter(rank.collective_windows.items()), (None, None))
    if device is None or window is None or not window.length:
        return None
    found = rank.exposed_communication(device)
    return found.transfer / window.length, (found.wait or 0) / window.length


def _volumes(rank: RankAnalysis, world: int) -> tuple[Any, ...]:
    """The collectives of a step, by kind and size; those of unknown size are left out."""
    from workbench.statistics.link import Timed

    calls, steps = rank.collective_calls, rank.steps
    if calls is None or steps is None or not len(steps):
        return ()
    known = calls.dropna(subset=["bytes"])
    known = known[~known["collective"].isin(["send", "recv", "send_recv"])]
    return tuple(
        Timed(
            kind=str(kind),
            ranks=world,
            bytes=float(str(size)),
            ns=float(rows["transfer_ns"].sum()) / len(steps),
            calls=len(rows) / len(steps),
        )
        for (kind, size), rows in known.groupby(["collective", "bytes"])
    )


def _overlap(rank: RankAnalysis) -> float | None:
    """What backward leaves beside it, from its first bucket on; ``None`` without buckets."""
    table = rank.details.buckets
    if table is None:
        return None
    first = table[table["bucket"] == 0]
    return float((first["backward_ns"] - first["start_ns"]).clip(lower=0).mean())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
