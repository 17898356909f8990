"""What a Run answers about memory: its peak, who holds it, what grows, which request failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.run import memory, tables

if TYPE_CHECKING:
    import pandas as pd

    from workbench.run.run import Run


class MemoryFace:
    """The part of a Run that is about memory."""

    _table: Callable[..., pd.DataFrame | None]

    @cached_property
    def memory(self) -> pd.DataFrame | None:
        """Peak of allocated memory and device allocations a step, where they were recorded."""
        return self._table(tables.memory)

    @cached_property
    def memory_holders(self) -> pd.DataFrame | None:
        """Who holds the peak of each memory: category, module, operator, line, bytes."""
        return self._table(lambda rank: memory.table(rank, lambda each: each.holders))

    @cached_property
    def memory_steps(self) -> pd.DataFrame | None:
        """Per memory and step its peak, median and last live bytes, and what it allocates."""
        return self._table(lambda rank: memory.table(rank, lambda each: each.steps))

    @cached_property
    def memory_phases(self) -> pd.DataFrame | None:
        """The peak of each memory in forward, backward, optimizer, validation and the rest."""
        return self._table(lambda rank: memory.table(rank, lambda each: each.phases))

    @cached_property
    def memory_growth(self) -> pd.DataFrame | None:
        """What steps took and nobody gave back, per step, largest first."""
        return self._table(lambda rank: memory.table(rank, lambda each: each.growing))

    @cached_property
    def memory_timeline(self) -> pd.DataFrame | None:
        """Live and reserved bytes of each memory over time, a column a category."""
        return self._table(lambda rank: memory.table(rank, lambda each: each.timeline))

    @cached_property
    def out_of_memory(self) -> pd.DataFrame | None:
        """Requests for memory that failed, what they met, and what to do; of snapshots only."""
        return self._table(memory.out_of_memory)

    @cached_property
    def memory_snapshot(self) -> Run | None:
        """What the allocator of the device did, request by request, as a Run of its own."""
        return memory.snapshot_of(self)  # type: ignore[arg-type]
