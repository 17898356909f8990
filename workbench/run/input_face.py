"""What a Run answers about its input: waits for batches, the loader, and what it was beside."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.run import tables
from workbench.run.stalls import stalls_table

if TYPE_CHECKING:
    import pandas as pd

    from workbench.store.loader import LoaderRecords
    from workbench.store.record import RunRecord


class InputFace:
    """The part of a Run that is about its data, and the machine while it was loaded."""

    record: RunRecord | None
    _table: Callable[..., pd.DataFrame | None]

    @cached_property
    def input(self) -> pd.DataFrame | None:
        """Every wait for a batch inside the window: start, length, step."""
        return self._table(tables.input_waits)

    @property
    def losses(self) -> tuple[float | None, ...] | None:
        """The losses of the first steps, warm-up first; of a Run of ranks, of all of them together.

        Two Runs of the same workload train the same batches in these steps, whether in one process
        or in several. ``None``: the steps give no loss, or it is a trace.
        """
        told = None if self.record is None else self.record.losses
        return None if told is None else tuple(told)

    @cached_property
    def stalls(self) -> pd.DataFrame | None:
        """Every step's exposed wait for input, divided by what the awaited batch was in.

        A column a part; they sum to ``exposed_ns`` exactly. What lies in no complete step is a row
        without a number.
        """
        from workbench.run.shown import in_nanoseconds

        found = self._table(stalls_table)
        return None if found is None else in_nanoseconds(found)

    @cached_property
    def loader_records(self) -> LoaderRecords | None:
        """What the loader's probes recorded: batches, worker processes, epochs, clock."""
        from workbench.run.loader import loader_records

        return loader_records(self)  # type: ignore[arg-type]

    @property
    def loader(self) -> pd.DataFrame | None:
        """One row a batch: its worker, its step, and the time of every stage on the way."""
        records = self.loader_records
        return None if records is None else records.batches

    @cached_property
    def system(self) -> pd.DataFrame | None:
        """Samples of the training process, the workers and the host while it was measured.

        ``attrs`` holds what does not change: usable processors, storage, network mounts.
        """
        from workbench.run.loader import system_samples

        found = system_samples(self)  # type: ignore[arg-type]
        if found is None:
            return None
        samples, about = found
        samples.attrs.update(about)
        return samples

    @cached_property
    def power(self) -> pd.DataFrame | None:
        """Power, clock and temperature of devices while it was measured, and energy a step."""
        from workbench.run.loader import power_of

        return power_of(self)  # type: ignore[arg-type]
