"""The longest way to every join of a graph, walked again for each scenario."""

import numpy as np

from workbench.analysis.nesting import Times
from workbench.analysis.replay.graph import Graph

CUT = -(2**60)
"""Weight of an edge that a scenario takes away; the time of a join that nothing leads to."""


class Ways:
    """The edges of a graph as plain lists: one edge at a time they are far faster than arrays."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._source: list[int] = graph.edges.source.tolist()
        self._target: list[int] = graph.edges.target.tolist()
        held = np.zeros(len(graph.time), bool)
        held[graph.edges.target] = True
        begins = np.where(held, CUT, graph.time)
        if not graph.span.first:
            # Nothing was recorded before this step: it begins with its first work, host or not.
            work = graph.work
            own = np.minimum(work.start, graph.span.start)
            begins[: len(work)] = np.maximum(begins[: len(work)], own)
        self._begins: list[int] = begins.tolist()

    def times(self, weight: Times) -> Times:
        """When every join comes; one that waits for nothing known stays where it was recorded."""
        return self._walked(self._begins.copy(), weight)

    def times_from(self, join: int, weight: Times) -> Times:
        """When every join comes that follows from this one; all others are far in the past."""
        begins = [CUT] * len(self._begins)
        begins[join] = int(self._graph.time[join])
        return self._walked(begins, weight)

    def _walked(self, at: list[int], weight: Times) -> Times:
        for source, target, ns in zip(self._source, self._target, weight.tolist(), strict=True):
            came = at[source] + ns
            if came > at[target]:  # noqa: PLR1730  max() takes three times as long
                at[target] = came
        return np.array(at, np.int64)
