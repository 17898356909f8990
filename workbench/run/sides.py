"""One side of a comparison: what one rank of a Run did, step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from workbench.run.breakdowns import device_label

if TYPE_CHECKING:
    from workbench.analysis.difference.by_step import ByStep
    from workbench.analysis.difference.categories import Parts
    from workbench.analysis.difference.operator_work import OperatorWork
    from workbench.run.rank import RankAnalysis


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """What a comparison takes of one rank; ``None`` is what its trace does not hold."""

    steps: int
    """Complete steps after warm-up; 0 where the trace marks none."""
    kernels: ByStep | None
    operators: OperatorWork | None
    parts: Parts | None
    """Where a step goes: its first device's, else the loop's thread's."""
    of: str
    """Whose parts these are."""
    on: Literal["device", "host"]

    def summed(self) -> Side:
        """The same with all steps as one."""
        operators = self.operators
        if operators is not None:
            device = None if operators.device is None else operators.device.summed()
            operators = operators._replace(host=operators.host.summed(), device=device)
        parts = self.parts
        if parts is not None:
            parts = {
                name: None if values is None else values.sum(keepdims=True)
                for name, values in parts.items()
            }
        kernels = None if self.kernels is None else self.kernels.summed()
        return replace(self, kernels=kernels, operators=operators, parts=parts)


def side_of(rank: RankAnalysis) -> Side:
    """Gather one side; what is asked here is computed once and kept by the rank."""
    from workbench.analysis.difference.by_step import counted_steps
    from workbench.analysis.difference.device_work import device_work
    from workbench.analysis.difference.operator_work import operator_work

    parts, of = _parts(rank)
    return Side(
        steps=len(counted_steps(rank.steps)),
        kernels=device_work(rank.trace, rank.launches, rank.steps),
        operators=operator_work(rank.trace, rank.launches, rank.steps),
        parts=parts,
        of=of,
        on="device" if rank.device_indices else "host",
    )


def _parts(rank: RankAnalysis) -> tuple[Parts | None, str]:
    """Parts of the steps that have a step time, of all complete steps where none has."""
    import numpy as np

    device = next(iter(rank.device_time), None)
    label = "the loop's thread" if device is None else device_label(rank, device)
    found = rank.details.steps.get(device)
    if found is not None:
        steps = found.steady if found.steady.any() else np.ones(len(found), bool)
        return {n: None if v is None else v[steps] for n, v in found.parts.items()}, label
    if rank.steps is not None and len(rank.steps):
        return None, label
    whole = rank.host_breakdown if device is None else rank.breakdown(device)
    if whole is None or (device is None and rank.device_indices):
        return None, label
    return {n: None if v is None else np.array([v], np.int64) for n, v in whole.items()}, label
