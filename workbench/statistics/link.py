"""What a collective costs on a link: a latency for every hop, and bytes over a bandwidth.

A collective of n ranks takes ``hops × latency + factor × bytes ÷ bandwidth`` (Thakur, Rabenseifner
and Gropp 2005, for rings). Both unknowns are fitted to measured times by least squares of relative
errors, neither below zero, so that a kilobyte counts as much as a gigabyte.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Link:
    """A fitted link."""

    latency_ns: float
    """Of one hop."""
    ns_per_byte: float
    """On the busiest link; 1 ÷ this is the bus bandwidth in GB/s."""
    error: float
    """Median relative difference between the fit and what was measured."""
    points: int

    @property
    def gb_s(self) -> float | None:
        """Bus bandwidth in GB/s; ``None`` where no time was seen to depend on bytes."""
        return 1 / self.ns_per_byte if self.ns_per_byte > 0 else None

    def time_ns(self, kind: str, ranks: int, size: float, calls: float = 1) -> float:
        """Of ``calls`` collectives of ``size`` bytes each."""
        moved = bus_factor(kind, ranks) * size
        return calls * (hops(kind, ranks) * self.latency_ns + moved * self.ns_per_byte)


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A measured collective, or several of one size together."""

    kind: str
    ranks: int
    bytes: float
    """Of one call: the full buffer for all-gather and reduce-scatter, else one rank's."""
    ns: float
    """Of all calls together."""
    calls: float = 1


def bus_factor(kind: str, ranks: int) -> float:
    """What one byte of the buffer costs on the busiest link (as the NCCL tests define it)."""
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if kind in ("all_gather", "reduce_scatter", "all_to_all", "all_to_allv"):
        return (ranks - 1) / ranks
    return 1.0


def hops(kind: str, ranks: int) -> float:
    """Messages that follow one another: of a ring, of a tree for broadcast and its kin."""
    if ranks < 2:
        return 0.0
    if kind == "all_reduce":
        return 2.0 * (ranks - 1)
    if kind in ("all_gather", "reduce_scatter", "all_to_all", "all_to_allv"):
        return float(ranks - 1)
    if kind in ("send", "recv", "send_recv"):
        return 1.0
    return float(math.ceil(math.log2(ranks)))


def fit_link(timed: Sequence[Timed]) -> Link | None:
    """Latency and bandwidth from measured times; ``None`` without a time above zero."""
    import numpy as np
    from scipy.optimize import nnls

    known = [each for each in timed if each.ns > 0 and each.ranks > 1 and each.calls > 0]
    if not known:
        return None
    of_hop = np.array([each.calls * hops(each.kind, each.ranks) / each.ns for each in known])
    of_byte = np.array(
        [each.calls * bus_factor(each.kind, each.ranks) * each.bytes / each.ns for each in known]
    )
    columns = np.column_stack((of_hop, of_byte))
    if np.linalg.matrix_rank(columns) < 2:  # one size alone: all of its time is the bytes'
        columns[:, 0 if of_byte.any() else 1] = 0.0
    size = np.where((found := np.linalg.norm(columns, axis=0)) > 0, found, 1.0)
    fitted = nnls(columns / size, np.ones(len(known)))[0] / size
    off = np.abs(columns @ fitted - 1.0)
    return Link(
        latency_ns=float(fitted[0]),
        ns_per_byte=float(fitted[1]),
        error=float(np.median(off)),
        points=len(known),
    )
