"""Replay a graph of waits under a scenario: every join comes when the last of its waits is over."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.communication_names import is_communication
from workbench.analysis.families import family
from workbench.analysis.intervals import EMPTY, Spans, clip, covered_until, total, union
from workbench.analysis.nesting import Times
from workbench.analysis.replay.graph import EdgeKind, Graph
from workbench.analysis.replay.host import bits
from workbench.analysis.replay.scenario import NOTHING_CHANGED, Scenario
from workbench.analysis.replay.ways import CUT, Ways
from workbench.analysis.replay.work import Index, Marks
from workbench.trace.table import Kind


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """A graph made ready to be replayed again and again."""

    graph: Graph
    scale_of: NDArray[np.int64]
    """Per piece of work, its place in ``families``."""
    families: tuple[str, ...]
    communication: Marks
    memory: Marks
    transfer: Times | None = None
    """Per piece of work its length without waiting for other ranks; ``None``: not known."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The steps."""
        return self.graph.span.numbers

    @property
    def measured(self) -> int:
        """The recorded length of the steps together, in ns."""
        return self.graph.span.length

    def saving(self, scenario: Scenario) -> int:
        """How much less time the steps together would take at most, in ns.

        Replayed from where the host and the device were recorded, the steps must first overcome
        their old lag behind each other, which a longer run does only once. So the saving is also
        counted on what a step cannot be shorter than, however often it is repeated.
        """
        if scenario.causes_only and not bits(scenario.causes) & self._present:
            return 0
        weight = self._weights(scenario)
        once = self.measured - self._length(scenario, weight)
        unchanged = min(self._repeated_unchanged, self.measured)
        repeated = unchanged - self._repeated(scenario, weight)
        return min(max(once, repeated, 0), self.measured)

    def length(self, scenario: Scenario) -> int:
        """How long the steps take from where host and device were recorded, in ns."""
        return self._length(scenario, self._weights(scenario))

    def _length(self, scenario: Scenario, weight: Times) -> int:
        graph, work = self.graph, self.graph.work
        start = self._ways.times(weight)
        end = start[: len(work)] + self._durations(scenario)
        done = max(int(end[self.own].max()), self._floor(scenario))
        return max(done - graph.span.start, 0)

    @cached_property
    def _repeated_unchanged(self) -> int:
        return self._repeated(NOTHING_CHANGED, self._weights(NOTHING_CHANGED))

    def _repeated(self, scenario: Scenario, weight: Times) -> int:
        """What the steps take at least when repeated: once round the loop, or one stream's work."""
        begin, end = self.graph.borders
        loop = self._ways.times_from(begin, weight)[end] - self.graph.time[begin]
        chains = [self._chain(index, length) for index, length in self._chains(scenario)]
        return max(int(loop), *chains, 0)

    @cached_property
    def _ways(self) -> Ways:
        return Ways(self.graph)

    @cached_property
    def _present(self) -> int:
        """The causes of which there is anything to free, a bit each."""
        edges, threads = self.graph.edges, self.graph.threads.values()
        causes = np.uint32(1) << edges.cause[edges.lag > 0].astype(np.uint32)
        found = (np.bitwise_or.reduce(bits) for bits in (causes, edges.cut))
        masks = (np.bitwise_or.reduce(thread.mask) for thread in threads)
        return int(np.bitwise_or.reduce([*found, *masks]))

    @cached_property
    def own(self) -> Marks:
        """The work that the steps launched."""
        return ~self.graph.work.fixed & (self.graph.work.call >= 0)

    @cached_property
    def busy(self) -> int:
        """Time of the steps in which any device works, in ns."""
        work, span = self.graph.work, self.graph.span
        return total(clip(union(work.start, work.end), span.start, span.end))

    def family_ns(self) -> dict[str, int]:
        """Summed time by family of the work that the steps launched, longest first."""
        work = self.graph.work
        summed = np.bincount(
            self.scale_of[self.own],
            weights=(work.end - work.start)[self.own].astype(float),
            minlength=len(self.families),
        )
        found = {name: int(ns) for name, ns in zip(self.families, summed, strict=True)}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _durations(self, scenario: Scenario) -> Times:
        work = self.graph.work
        length = work.end - work.start
        if scenario.late_ranks and self.transfer is not None:
            length = np.minimum(length, self.transfer)
        if scenario.faster:
            times = np.array([scenario.faster.get(name, 1.0) for name in self.families])
            length = np.rint(length / times[self.scale_of]).astype(np.int64)
        if scenario.hidden:
            length = np.where(self._hidden(scenario), 0, length)
        return np.where(work.fixed, work.end - work.start, length)

    def _weights(self, scenario: Scenario) -> Times:
        """How long each edge takes."""
        edges, work = self.graph.edges, self.graph.work
        gone = union(*np.array(scenario.gone, np.int64).T) if scenario.gone else EMPTY
        freed = bits(scenario.causes)
        weight = self._host_weights(freed, gone) if scenario.on_host else self._unfreed.copy()
        on_device = np.flatnonzero(edges.kind != EdgeKind.HOST)
        source = edges.source[on_device]
        full = (work.end - work.start)[source]
        part = edges.until[on_device] - edges.since[on_device]
        length = self._durations(scenario)[source]
        over = edges.kind[on_device] == EdgeKind.OVERLAP
        weight[on_device] = np.where(over, _part(part, length, full), length)
        weight += self._lags(scenario, freed, gone)
        weight = np.maximum(weight, 0)
        weight[(edges.cut & np.uint32(freed)) != 0] = CUT
        return weight

    @cached_property
    def _unfreed(self) -> Times:
        return self._host_weights(0, EMPTY)

    def _host_weights(self, freed: int, gone: Spans) -> Times:
        """The host code of each edge that is left, 0 for edges without any."""
        edges = self.graph.edges
        weight = np.zeros(len(edges), np.int64)
        for lane, thread in self.graph.threads.items():
            here = np.flatnonzero((edges.kind == EdgeKind.HOST) & (edges.lane == lane))
            kept = thread.kept(freed, gone)
            weight[here] = kept.between(edges.since[here], edges.until[here])
        return weight

    def _lags(self, scenario: Scenario, freed: int, gone: Spans) -> Times:
        edges = self.graph.edges
        lag = edges.lag
        free = (np.uint32(1) << edges.cause.astype(np.uint32)) & np.uint32(freed)
        lag = np.where((free != 0) & (lag > 0), 0, lag)
        if not len(gone.start):
            return lag
        end = self.graph.time[edges.target]
        return lag - np.where(
            lag > 0, covered_until(gone, end) - covered_until(gone, end - np.maximum(lag, 0)), 0
        )

    def _floor(self, scenario: Scenario) -> int:
        """Hidden work still has to be done, one piece after the other on each stream."""
        work, span = self.graph.work, self.graph.span
        floor = span.start
        hidden = self._hidden(scenario)
        for index, length in self._chains(scenario):
            if hidden[index[0]]:
                earlier = work.fixed & (work.stream == work.stream[index[0]])
                since = max(span.host_start, int(work.end[earlier].max(initial=0)))
                floor = max(floor, since + self._chain(index, length))
        return floor

    def _chains(self, scenario: Scenario) -> list[tuple[Index, Times]]:
        """The own work of every stream and how long it takes; what is hidden stands for itself."""
        work = self.graph.work
        length = self._durations(replace(scenario, hidden=frozenset()))
        lane = work.stream * 2 + self._hidden(scenario)
        groups = [np.flatnonzero(self.own & (lane == each)) for each in np.unique(lane[self.own])]
        return [(index, length[index]) for index in groups]

    def _hidden(self, scenario: Scenario) -> Marks:
        """The work that the scenario hides."""
        found = np.zeros(len(self.graph.work), bool)
        for name in scenario.hidden:
            found |= self.communication if name == "communication" else self.memory
        return found

    def _chain(self, index: Index, length: Times) -> int:
        """How long work of one stream takes, each piece until the next one begins beside it."""
        start, end = self.graph.work.start[index], self.graph.work.end[index]
        alone = np.append(np.minimum(end[:-1], start[1:]), end[-1:]) - start
        return int(_part(alone, length, end - start).sum())


def prepare(graph: Graph, transfer_of: Mapping[int, int] | None = None) -> Replay:
    """Classify the work of a graph.

    Args:
        graph: The graph.
        transfer_of: Row of a collective's kernel and how long its transfer takes, in ns.
    """
    trace, work = graph.evidence.trace, graph.work
    name = trace.events.name[work.row]
    codes, index = np.unique(name, return_inverse=True)
    of_code = [family(trace.names[int(code)]) for code in codes]
    families = tuple(dict.fromkeys(of_code))
    place = np.array([families.index(each) for each in of_code], np.int64)
    spoken = np.array([is_communication(trace.names[int(code)]) for code in codes], bool)
    kernel = trace.events.kind[work.row] == Kind.KERNEL
    transfer = None
    if transfer_of is not None:
        length = (work.end - work.start).tolist()
        rows = work.row.tolist()
        transfer = np.array(
            [transfer_of.get(row, ns) for row, ns in zip(rows, length, strict=True)], np.int64
        )
    return Replay(
        graph=graph,
        scale_of=place[index] if len(codes) else np.empty(0, np.int64),
        families=families,
        communication=kernel & spoken[index] if len(codes) else np.zeros(0, bool),
        memory=~kernel,
        transfer=transfer,
    )


def _part(part: Times, length: Times, full: Times) -> Times:
    """A part of each piece of work, when the whole takes another length."""
    return np.floor(part * (length / np.maximum(full, 1))).astype(np.int64)
