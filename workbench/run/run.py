"""The Run: what was measured, and every answer about it, each computed when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import RunError
from workbench.run import tables
from workbench.run.cost_face import CostFace
from workbench.run.figure_names import FigureName
from workbench.run.input_face import InputFace
from workbench.run.job import Job
from workbench.run.memory_face import MemoryFace
from workbench.run.rank import RankAnalysis
from workbench.run.replayed import step_of_record
from workbench.store.record import RunRecord

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.trust import Trust
    from workbench.pages.folded import Folded
    from workbench.pages.run import PartName, Section
    from workbench.pages.static import StaticFigure
    from workbench.pages.timeline.static import StaticTimeline
    from workbench.run.compare import Comparison
    from workbench.run.found import Findings
    from workbench.run.more import Subject
    from workbench.run.perfetto import PerfettoView
    from workbench.run.summary import Summary
    from workbench.trace.table import Trace
    from workbench.widgets.timeline import Timeline


class Run(CostFace, InputFace, MemoryFace):
    """Answers over one Run folder (``kind`` is measured) or over any trace (``kind`` is trace).

    Tables are pandas DataFrames with times in nanoseconds. A table that was not measured is
    ``None``; ``run.summary.not_measured`` says why. With several ranks, tables carry a ``rank``
    column and ``run.ranks`` holds the answers for each.
    """

    def __init__(
        self,
        *,
        name: str,
        ranks: Sequence[RankAnalysis],
        record: RunRecord | None = None,
        folder: Path | None = None,
        place: Path | None = None,
        traces: Sequence[Path] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.ranks = tuple(ranks)
        self.job = Job(self.ranks) if len(self.ranks) > 1 else None
        for rank in self.ranks:
            rank.job = self.job
            rank.record = record
            rank.record_step_ns = step_of_record(record)
            rank.overhead_ratio = None if record is None else record.overhead_ratio
        self._first.recorded_input = lambda: (self.loader_records, self.system)
        self.record = record
        self.folder = folder
        """As it was named; :attr:`place` is where it is found also from another current folder."""
        self.place = folder if place is None else place
        self.kind: Literal["measured", "trace"] = "trace" if record is None else "measured"
        self.traces = tuple(trace.absolute() for trace in traces)
        self.notes = (*notes, *(record.notes if record is not None else ()))

    @cached_property
    def findings(self) -> Findings:
        """What is wrong, worst first, each with its evidence and an upper bound of the gain.

        What several ranks show is one finding, the worst rank's, with all of them in its evidence.
        """
        from workbench.run.found import findings_of

        return findings_of(self)

    @cached_property
    def summary(self) -> Summary:
        """The numbers of ``workbench analyze --json``, and why some of them are missing."""
        from workbench.run.summary import summarise

        return summarise(self)

    @property
    def trace(self) -> Trace:
        """The event table of the first rank."""
        return self._first.trace

    @property
    def trust(self) -> Trust:
        """The trust check of the first rank; others are in ``run.ranks``."""
        return self._first.trust

    @cached_property
    def steps(self) -> pd.DataFrame | None:
        """One row a complete step: number, start, host and step time, warm-up, outlier."""
        return self._table(tables.steps)

    @cached_property
    def step_parts(self) -> pd.DataFrame | None:
        """One row a complete step and device, a column a part; they sum to the step exactly."""
        return self._table(tables.step_parts)

    @cached_property
    def outliers(self) -> pd.DataFrame | None:
        """The steps that take far longer than the others, and what was different in them."""
        return self._table(tables.outliers)

    @cached_property
    def launches(self) -> pd.DataFrame | None:
        """Launches by device and stream: how many a step, how late and short their work is."""
        return self._table(lambda rank: rank.details.launches)

    @cached_property
    def kernels(self) -> pd.DataFrame | None:
        """Kernels by name: calls, times, family, share, tensor cores, occupancy, registers."""
        return self._table(lambda rank: rank.kernels)

    @cached_property
    def families(self) -> pd.DataFrame | None:
        """Kernels by family; ``other`` is what no pattern knows."""
        return self._table(lambda rank: rank.details.families)

    @cached_property
    def operators(self) -> pd.DataFrame | None:
        """Framework operators by name: calls, host time alone and with children, device time."""
        return self._table(lambda rank: rank.operators)

    @cached_property
    def operator_shapes(self) -> pd.DataFrame | None:
        """Operators by name and the shapes that they were called with."""
        return self._table(lambda rank: rank.details.operator_shapes)

    @cached_property
    def phases(self) -> pd.DataFrame | None:
        """Forward, backward and optimizer: host time, device time, launches and operators."""
        return self._table(lambda rank: rank.details.phases)

    @cached_property
    def modules(self) -> pd.DataFrame | None:
        """The tree of modules: host time, device time of the forward and the backward pass."""
        return self._table(lambda rank: rank.details.modules)

    @cached_property
    def copies(self) -> pd.DataFrame | None:
        """Copies and sets by kind: bytes, bandwidth, and how much of them other work hides."""
        return self._table(lambda rank: rank.details.copies)

    @cached_property
    def idle(self) -> pd.DataFrame | None:
        """Idle time of every device in its window by cause; sums to the idle time exactly."""
        return self._table(tables.idle)

    @cached_property
    def gaps(self) -> pd.DataFrame | None:
        """The longest idle gaps of every device, and what the host did meanwhile."""
        return self._table(lambda rank: rank.details.gaps)

    @cached_property
    def communication(self) -> pd.DataFrame | None:
        """Collectives in the window by kind and process group: bytes, time, wait and transfer."""
        return self._table(lambda rank: rank.communication)

    @cached_property
    def critical_path(self) -> pd.DataFrame | None:
        """What decides when a typical step ends, piece by piece; sums to the step exactly."""
        return self._table(lambda rank: rank.critical_path)

    @cached_property
    def what_if(self) -> pd.DataFrame | None:
        """What a step would take if something cost nothing: bounds, largest saving first."""
        return self._table(lambda rank: rank.what_if)

    @cached_property
    def process_groups(self) -> pd.DataFrame | None:
        """Collectives by process group and dtype: bytes, exposed and hidden time, transfer."""
        return self._table(lambda rank: rank.details.groups)

    @cached_property
    def buckets(self) -> pd.DataFrame | None:
        """Gradient buckets against backward: when each moves, and what is left after backward."""
        return self._table(lambda rank: rank.details.buckets)

    @property
    def imbalance(self) -> pd.DataFrame | None:
        """One row a rank, a column a phase, in nanoseconds a step; ``None`` for one rank."""
        if self.job is None:
            return None
        from workbench.run.shown import in_nanoseconds

        found = self.job.imbalance
        return None if found is None else in_nanoseconds(found)

    @property
    def worst_rank(self) -> int | None:
        """The rank to look at first: the one that the worst finding is about, else the first.

        A finding about one rank goes before those that several show, of which it is the worst one.
        """
        found = self.findings
        about = [each.rank for each in found] + [each.evidence.get("worst_rank") for each in found]
        known = {rank.rank for rank in self.ranks} - {None}
        return next((rank for rank in about if rank in known), self._first.rank)

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices of the first rank that have a window to break down."""
        return tuple(self._first.device_time)

    def figure(
        self, name: FigureName, *, rank: int | None = None, device: int | None = None
    ) -> StaticFigure:
        """A chart by its name: breakdown, steps, kernels and so on, see ``FigureName``.

        A chart is of one rank, the first when none is named; where there are several, its title
        says which. Breakdown, waterfall, idle, queue and the parts of steps are of one device, the
        first when none is named; kernels, families and copies are of all devices, or of the one
        named. Ranks and rank_steps are of all ranks.
        """
        from workbench.run.charts import chart

        return chart(self, name, self.rank(rank), device)

    def more(self, subject: Subject, *, rank: int | None = None) -> Folded:
        """Charts and tables on a subject, folded away.

        Args:
            subject: breakdowns (of every rank), gaps, loader, steps, families, launches, copies,
                phases, communication, memory, roof or ranks.
            rank: Whose; by default the first.
        """
        from workbench.run.more import more

        return more(self, subject, self.rank(rank))

    def part(self, name: PartName) -> Section:
        """One part of what a Run shows of itself: verdict, findings, parts, details, measured."""
        from workbench.pages.run import PARTS, Section
        from workbench.run.view import view

        if name not in PARTS:
            raise RunError(f"no part is called {name!r}; there are {', '.join(PARTS)}.")
        return Section(view=view(self), name=name)

    def compare(self, other: Run) -> Comparison:
        """Whether ``other`` is faster or slower than this Run, or that nobody can tell."""
        from workbench.run.compare import compare

        return compare(self, other)

    def to_tensorboard(self, folder: str | Path) -> Path:
        """Write a copy of the traces that TensorBoard's profiler plugin reads right.

        What it can show, and what it cannot, is in ``docs/tensorboard.md``.

        Args:
            folder: The folder that TensorBoard is started with; the Run gets one of its own in it.

        Returns:
            The Run's folder in it.

        Raises:
            MissingExtraError: The extra ``tensorboard`` is not installed.
            RunError: The Run's folder is there already.
        """
        from workbench.run.to_tensorboard import to_tensorboard

        return to_tensorboard(self.ranks, Path(folder), name=self.name)

    def perfetto(self, rank: int | None = None) -> PerfettoView:
        """Open a trace in the Perfetto UI, offline, served by this process to this machine only.

        Args:
            rank: Whose trace; by default the first.

        Raises:
            MissingExtraError: The extra ``perfetto`` is not installed.
        """
        from workbench.run.perfetto import open_perfetto

        chosen = self.rank(rank)
        return open_perfetto(self.traces[self.ranks.index(chosen)], lambda: chosen.trace)

    def timeline(
        self,
        *,
        ranks: Sequence[int] | None = None,
        static: bool | None = None,
        most_bytes: int | None = None,
    ) -> Timeline | StaticTimeline:
        """Everything that was recorded, as lanes on one clock, to zoom, search and select in.

        Args:
            ranks: Numbers of the ranks to stack; by default the first eight.
            static: Whether to give a page that needs no kernel instead of a widget. By default it
                is one where nobody can act on a widget: without the extra ``notebook``, and in
                notebooks that run headless (papermill, nbconvert).
            most_bytes: How large the static page may be, by default 500 kB; of more events short
                neighbours are drawn together, and it says so.
        """
        from workbench.run.timeline import timeline

        return timeline(self, ranks=ranks, static=static, most_bytes=most_bytes)

    def rank(self, number: int | None = None) -> RankAnalysis:
        """The answers for one rank, the first when none is named."""
        if number is None:
            return self._first
        for one in self.ranks:
            if one.rank == number:
                return one
        known = ", ".join("?" if one.rank is None else str(one.rank) for one in self.ranks)
        raise RunError(f"{self.name!r} has no rank {number}: it has {known}.")

    def delete(self) -> None:
        """Delete the Run's folder; a Run over a trace from elsewhere is refused."""
        from workbench.store.folder import delete_run

        if self.folder is None or self.kind == "trace":
            raise RunError(
                f"{self.name!r} is a view of a trace, not a Run that we recorded: "
                "delete the file yourself if you no longer want it."
            )
        delete_run(self.place or self.folder)

    @property
    def _first(self) -> RankAnalysis:
        return self.ranks[0]

    def _table(self, ask: Callable[[RankAnalysis], pd.DataFrame | None]) -> pd.DataFrame | None:
        import pandas as pd

        from workbench.run.shown import Shown

        answers = []
        for rank in self.ranks:
            if (table := ask(rank)) is not None:
                answers.append((rank, table))
            if self.job is not None:
                self.job.rest(rank)
        if not answers:
            return None
        told = [table.attrs for _, table in answers]
        agreed = {k: v for k, v in told[0].items() if all(each.get(k) == v for each in told)}
        if len(self.ranks) == 1:
            table = Shown(answers[0][1])
            table.attrs = agreed
            return table
        table = Shown(pd.concat([table for _, table in answers], ignore_index=True))
        table.attrs = agreed
        whose = [rank.rank for rank, own in answers for _ in range(len(own))]
        table.insert(0, "rank", pd.Series(whose, dtype="Int64"))
        return table

    def __repr__(self) -> str:
        from workbench.pages.run import run_text
        from workbench.run.view import view

        return run_text(view(self))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.run import run_html, run_text
        from workbench.run.view import view

        shown = view(self)
        return {"text/html": run_html(shown), "text/plain": run_text(shown)}
