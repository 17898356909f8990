"""How unevenly the ranks work: one row a rank, a column a phase, per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.analysis.ranks.part import RankPart
from workbench.analysis.ranks.straggler import Waits, phases_per_step

if TYPE_CHECKING:
    import pandas as pd


def imbalance_table(parts: Sequence[RankPart], waited: Waits) -> pd.DataFrame:
    """One row a rank: ``rank, step_ns, wait_ns, transfer_ns``, then every phase; ns a step.

    Wait and transfer are the two parts of the collectives that all ranks share, hidden or not.

    Phases that no rank spends time in are left out; one that a rank did not measure is missing.
    """
    import pandas as pd

    rows = []
    for position, part in enumerate(parts):
        ns, moved = waited.wait_ns[position], waited.transfer_ns[position]
        rows.append(
            {
                "rank": -1 if part.rank is None else part.rank,
                "step_ns": part.step_ns,
                "wait_ns": None if ns is None else ns / (waited.steps or 1),
                "transfer_ns": None if moved is None else moved / (waited.steps or 1),
                **phases_per_step(part),
            }
        )
    table = pd.DataFrame(rows).astype(float).astype({"rank": int})
    fixed = ["rank", "step_ns", "wait_ns", "transfer_ns"]
    spent = [name for name in table.columns if name not in fixed and table[name].gt(0).any()]
    return table[fixed + spent]
