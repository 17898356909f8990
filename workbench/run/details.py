"""The analyses of one rank beyond where its window goes, each computed when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from workbench.analysis.copies import Copies
    from workbench.analysis.intervals import Spans
    from workbench.analysis.outliers import Outlier
    from workbench.analysis.phases import Ranges
    from workbench.analysis.queue_length import QueueLength, QueueSummary
    from workbench.analysis.step_breakdown import StepBreakdown
    from workbench.run.rank import RankAnalysis
    from workbench.trace.table import Device

LARGE = ("_copies", "copy_calls")
"""Answers as large as the trace, forgotten with it."""


class Details:
    """Small answers for one rank; ``None`` is a table that was not measured."""

    def __init__(self, rank: RankAnalysis) -> None:
        self._rank = rank

    def release(self) -> None:
        """Forget what is as large as the trace."""
        for name in LARGE:
            self.__dict__.pop(name, None)

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The devices that the trace's header describes."""
        return self._rank.trace.devices

    @cached_property
    def steps(self) -> dict[int | None, StepBreakdown]:
        """Every complete step by parts, per device; under ``None`` that of the loop's thread."""
        from workbench.analysis.step_breakdown import device_steps, host_steps

        rank = self._rank
        steps = rank.steps
        if steps is None or not len(steps):
            return {}
        if rank.device_indices:
            return {
                device: device_steps(
                    rank.trace,
                    device,
                    steps,
                    rank.launches,
                    idle=idle,
                    waits=self._waits(device),
                )
                for device, idle in rank.idle.items()
            }
        if rank.window is None or rank.host_breakdown is None:
            return {}
        return {None: host_steps(rank.trace, rank.window, steps, rank.host_breakdown)}

    def _waits(self, device: int) -> Spans | None:
        from workbench.analysis.communication import waiting_spans

        found = self._rank.collectives
        return None if found is None else waiting_spans(found, device, self._rank.transfer)

    @cached_property
    def outliers(self) -> dict[int | None, tuple[Outlier, ...]]:
        """Steps that take far longer than the others, per device, and what differs in them."""
        from workbench.analysis.outliers import find_outliers

        rank = self._rank
        if rank.steps is None:
            return {}
        return {
            device: find_outliers(
                rank.trace,
                rank.steps,
                rank.launches,
                found,
                None if device is None else rank.idle[device],
            )
            for device, found in self.steps.items()
        }

    @cached_property
    def gaps(self) -> pd.DataFrame | None:
        """The longest idle gaps of every device; ``None`` where no idle time is known."""
        import pandas as pd

        from workbench.analysis.longest_gaps import longest_gaps

        rank = self._rank
        found = [longest_gaps(rank.trace, idle) for idle in rank.idle.values()]
        return pd.concat(found, ignore_index=True) if found else None

    def queues(self, device: int) -> tuple[QueueLength, ...]:
        """The queue of a device over time, then that of each stream; too large to be kept."""
        from workbench.analysis.queue_length import queue_lengths

        rank = self._rank
        return () if rank.voids("queue") else queue_lengths(rank.trace, rank.launches, device)

    @property
    def launches(self) -> pd.DataFrame | None:
        """Launches of kernels by device and stream; ``None`` without launch records."""
        return self._launched[0]

    @property
    def short_share(self) -> Mapping[int, float | None]:
        """Per device with launch records: share of calls that last longer than their work."""
        return self._launched[1]

    @cached_property
    def _launched(self) -> tuple[pd.DataFrame | None, Mapping[int, float | None]]:
        """Both, from calls that are as many as the trace has launches and are not kept."""
        import pandas as pd

        from workbench.analysis.launch_calls import launch_calls_of, short_share
        from workbench.analysis.launch_table import launch_table

        rank = self._rank
        steps = 0 if rank.steps is None else len(rank.steps)
        tables: list[pd.DataFrame] = []
        shares: dict[int, float | None] = {}
        for device in rank.device_indices:
            window = rank.windows[device]
            queues: tuple[QueueSummary, ...] = ()
            if window is not None:
                span = window.shifted(rank.launches.clock_offset.get(device, 0))
                queues = tuple(each.summary(span) for each in self.queues(device))
            calls = launch_calls_of(rank.trace, rank.launches, rank.steps, device)
            if len(calls):
                shares[device] = short_share(calls, rank.steps)
            if len(calls) and window is not None:
                tables.append(launch_table(calls, queues, device, steps))
        return (pd.concat(tables, ignore_index=True) if tables else None), shares

    @cached_property
    def families(self) -> pd.DataFrame | None:
        """Kernels of the window by family; ``None`` when no device was recorded."""
        from workbench.analysis.kernel_families import family_table

        kernels = self._rank.kernels
        return None if kernels is None else family_table(kernels)

    @cached_property
    def copies(self) -> pd.DataFrame | None:
        """Copies and sets in the windows by kind; ``None`` when no device was recorded."""
        from workbench.analysis.copies import copy_table

        return copy_table(self._copies) if self._rank.device_indices else None

    @cached_property
    def copy_calls(self) -> pd.DataFrame | None:
        """One row a copy in the windows whose size is known."""
        from workbench.analysis.copies import copy_calls

        return copy_calls(self._copies) if self._rank.device_indices else None

    @cached_property
    def _copies(self) -> Copies:
        from workbench.analysis.copies import find_copies

        return find_copies(self._rank.trace, self._rank.windows)

    @property
    def groups(self) -> pd.DataFrame | None:
        """Collectives in the windows by process group and dtype; ``None``: nobody can know."""
        from workbench.analysis.process_groups import group_table

        rank = self._rank
        if rank.collectives is None or not any(rank.collective_windows.values()):
            return None
        return group_table(rank.collectives, rank.collective_windows, rank.transfer)

    @cached_property
    def buckets(self) -> pd.DataFrame | None:
        """Gradient buckets against their backward pass; ``None`` without a backward or a bucket."""
        from workbench.analysis.buckets import bucket_table

        rank = self._rank
        if rank.collectives is None:
            return None
        return bucket_table(rank.trace, rank.collectives, rank.launches, rank.steps)

    @cached_property
    def phases(self) -> pd.DataFrame | None:
        """Forward, backward and optimizer over the steps that count, else over the window."""
        from workbench.analysis.phases import phase_table

        ranges = self._ranges
        rank = self._rank
        return None if ranges is None else phase_table(rank.trace, rank.launches, ranges)

    @property
    def _ranges(self) -> Ranges | None:
        """Host ranges of the steps that count; all complete ones where none does; the window."""
        import numpy as np

        from workbench.analysis.phases import Ranges
        from workbench.analysis.steady import counted_ranges

        counted, window = counted_ranges(self._rank.steps), self._rank.host_window
        if counted is not None:
            return Ranges(*counted, len(counted[0]))
        if window is None:
            return None
        return Ranges(np.array([window.start]), np.array([window.end]), 0)

    @cached_property
    def operator_shapes(self) -> pd.DataFrame | None:
        """Operators in the window by name and input shapes; ``None`` where none were recorded."""
        from workbench.analysis.operator_shapes import shape_table

        rank = self._rank
        return shape_table(rank.trace, rank.launches, rank.host_window)

    @cached_property
    def operator_times(self) -> pd.DataFrame | None:
        """Host time of every operator over the same steps; ``None`` without operators."""
        from workbench.analysis.operator_families import operator_times

        rank, ranges = self._rank, self._ranges
        bounds = None if ranges is None else (ranges.start, ranges.end)
        return operator_times(rank.trace, rank.launches, bounds)

    @cached_property
    def operator_families(self) -> pd.DataFrame | None:
        """The same by family."""
        from workbench.analysis.operator_families import family_times

        return None if self.operator_times is None else family_times(self.operator_times)

    @cached_property
    def modules(self) -> pd.DataFrame | None:
        """The tree of modules that begin in the window; ``None`` where none were recorded."""
        from workbench.analysis.modules import module_table

        rank = self._rank
        return module_table(rank.trace, rank.launches, rank.host_window)
