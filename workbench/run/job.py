"""Several ranks of one Run together: read one after the other, only small results kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.trace.table import Violation

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.ranks.clock import Clock
    from workbench.analysis.ranks.matching import Matched
    from workbench.analysis.ranks.part import RankPart
    from workbench.analysis.ranks.straggler import Straggler, Waits
    from workbench.analysis.trust import Trust
    from workbench.run.rank import RankAnalysis

MOST_HELD = 8
"""Of more ranks than this, no trace stays in memory after its questions are answered."""


class Job:
    """What only all ranks together can tell, computed when first asked for."""

    def __init__(self, ranks: Sequence[RankAnalysis]) -> None:
        self._ranks = tuple(ranks)

    @cached_property
    def parts(self) -> tuple[RankPart, ...]:
        """The small results of every rank."""
        parts = []
        for rank in self._ranks:
            parts.append(rank.part)
            self.rest(rank)
        return tuple(parts)

    def rest(self, rank: RankAnalysis) -> None:
        """Let a rank drop its trace, if there are too many ranks to hold all of them."""
        if len(self._ranks) > MOST_HELD:
            rank.release()

    @cached_property
    def matched(self) -> Matched:
        """Which calls of different ranks are the same collective."""
        from workbench.analysis.ranks.matching import match

        return match(self.parts)

    @cached_property
    def clock(self) -> Clock:
        """The common clock."""
        from workbench.analysis.ranks.clock import common_clock

        return common_clock(self.parts, self.matched)

    @cached_property
    def transfers(self) -> tuple[NDArray[np.int64], ...]:
        """Per rank and call, its transfer."""
        from workbench.analysis.ranks.transfer import transfers

        return transfers(self.parts, self.matched, self.clock)

    @cached_property
    def waits(self) -> Waits:
        """How long every rank waited for others."""
        from workbench.analysis.ranks.straggler import waits

        return waits(self.parts, self.matched, self.transfers)

    @cached_property
    def straggler(self) -> Straggler | None:
        """The rank that the others wait for, if there is one."""
        from workbench.analysis.ranks.straggler import straggler

        return straggler(self.parts, self.waits)

    @cached_property
    def imbalance(self) -> pd.DataFrame:
        """One row a rank, a column a phase, in nanoseconds a step."""
        from workbench.analysis.ranks.imbalance import imbalance_table

        return imbalance_table(self.parts, self.waits)

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """Clocks that cannot be compared, or only after correction."""
        from workbench.analysis.ranks.clock import clock_violations

        return clock_violations(self.parts, self.clock)

    def trust_of(self, rank: RankAnalysis) -> Trust:
        """A rank's own trust, and what is wrong between the ranks."""
        own = rank.own_trust
        return replace(own, violations=(*own.violations, *self.violations))

    def transfer_of(self, rank: RankAnalysis) -> NDArray[np.int64]:
        """Per call of this rank, its transfer."""
        return self.transfers[self._ranks.index(rank)]
