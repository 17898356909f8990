"""Every analysis of one rank's trace, each computed once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.trace.table import Trace, Violation

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from workbench.analysis.collectives import Collectives
    from workbench.analysis.communication import ExposedCommunication
    from workbench.analysis.device_time import DeviceTime
    from workbench.analysis.evidence import Evidence
    from workbench.analysis.idle import Idle
    from workbench.analysis.input_wait import InputWait
    from workbench.analysis.launches import Launches
    from workbench.analysis.memory import MemorySummary
    from workbench.analysis.memory.answer import DeviceMemory
    from workbench.analysis.queue import LaunchStatistics
    from workbench.analysis.ranges import Range
    from workbench.analysis.ranks.part import RankPart
    from workbench.analysis.snapshots import Snapshot
    from workbench.analysis.snapshots.out_of_memory import PostMortem
    from workbench.analysis.stalls.parts import Stalls, Unseen
    from workbench.analysis.steps import Steps
    from workbench.analysis.trust import Trust
    from workbench.run.costs import CostAnswers
    from workbench.run.details import Details
    from workbench.run.job import Job
    from workbench.run.replayed import Replayed
    from workbench.run.stalls import Recorded
    from workbench.store.record import RunRecord


LARGE = ("trace", "launches", "evidence", "idle", "recorded_idle")
"""What grows with the trace; what is asked of it afterwards reads the trace again."""


class RankAnalysis:
    """The answers for one rank; ``read`` is called at the first question."""

    def __init__(
        self,
        *,
        source: str,
        rank: int | None,
        read: Callable[[], Trace],
        alone: bool = False,
        on_cpu: bool = False,
        job: Sequence[Violation] = (),
    ) -> None:
        self.source = source
        self._rank = rank
        self._read = read
        self._alone = alone
        self._on_cpu = on_cpu
        self._job = tuple(job)
        self.job: Job | None = None
        """The other ranks of the same Run; ``None`` for one rank alone."""
        self.infer_steps = False
        """Whether what repeats may stand for steps where none is marked."""
        self.recorded_input: Callable[[], Recorded] | None = None
        """Gives what was recorded of this rank's loader; ``None`` where nothing can have been."""
        self.record_step_ns: float | None = None
        """Median step time without the profiler; ``None`` for a trace from elsewhere."""
        self.snapshot: Snapshot | None = None
        """What a memory snapshot tells, where one was opened instead of a trace."""
        self.record: RunRecord | None = None
        """What the Run's folder tells; ``None`` for a trace from elsewhere."""
        self.overhead_ratio: float | None = None
        """How many times as long a step is under the profiler, where both were measured."""

    def read_through(self, change: Callable[[Trace], Trace]) -> None:
        """Change the trace whenever it is read; to be asked before any answer."""
        read, known = self._read, self.__dict__.pop("trace", None)
        self._read = lambda: change(read())
        if known is not None:
            self.__dict__["trace"] = change(known)

    def release(self) -> None:
        """Drop the trace and what is as large; asked again, the trace is read again."""
        for name in LARGE:
            self.__dict__.pop(name, None)
        self.details.release()
        self.replayed.release()

    @cached_property
    def details(self) -> Details:
        """The analyses beyond where a window goes: steps, launches, copies, phases and more."""
        from workbench.run.details import Details

        return Details(self)

    @cached_property
    def costs(self) -> CostAnswers:
        """What operators compute and move, against what the device could do."""
        from workbench.run.costs import CostAnswers

        return CostAnswers(self)

    @cached_property
    def replayed(self) -> Replayed:
        """The steps replayed: critical path, and what each change could save."""
        from workbench.run.replayed import Replayed

        return Replayed(self)

    @property
    def critical_path(self) -> pd.DataFrame | None:
        """What decides when a typical step ends, piece by piece; sums to the step exactly."""
        return self.replayed.path_table

    @cached_property
    def what_if(self) -> pd.DataFrame | None:
        """What a step would take if something cost nothing, largest saving first."""
        from workbench.analysis.replay.tables import what_if_table

        found = self.replayed.outcomes
        return None if found is None else what_if_table(found)

    @cached_property
    def trace(self) -> Trace:
        """The event table."""
        return self._read()

    @cached_property
    def rank(self) -> int | None:
        """The rank as the file says it, else as its name does; a process alone has none."""
        if self._alone and self.trace.world_size in (None, 1):
            return None
        return self.trace.rank if self._rank is None else self._rank

    @cached_property
    def launches(self) -> Launches:
        """Device work joined to the calls that launched it."""
        from workbench.analysis.launches import join_launches

        return join_launches(self.trace)

    @cached_property
    def steps(self) -> Steps | None:
        """The training steps, or ``None`` when the trace marks none."""
        from workbench.analysis.inferred_steps import infer_steps
        from workbench.analysis.steps import find_steps

        found = find_steps(self.trace, self.launches)
        if found is None and self.infer_steps:
            return infer_steps(self.trace, self.launches)
        return found

    @cached_property
    def own_trust(self) -> Trust:
        """The trace for itself; what its job lacks makes no number of it wrong."""
        from workbench.analysis.trust import check_trust

        found = check_trust(self.trace, self.launches, self.steps, on_cpu=self._on_cpu)
        return replace(found, violations=(*found.violations, *self._job))

    @property
    def trust(self) -> Trust:
        """The same, and what is wrong with the clocks of several ranks, which voids none of it."""
        return self.own_trust if self.job is None else self.job.trust_of(self)

    def voids(self, what: str) -> bool:
        """Whether a violation makes the named numbers of this trace void."""
        return any(what in violation.voids for violation in self.own_trust.violations)

    @cached_property
    def device_indices(self) -> tuple[int, ...]:
        """The devices with recorded work."""
        from workbench.analysis.devices import device_indices

        return device_indices(self.trace)

    @cached_property
    def windows(self) -> dict[int, Range | None]:
        """The window of every device."""
        from workbench.analysis.window import window

        return {d: window(self.trace, d, self.steps, self.launches) for d in self.device_indices}

    @cached_property
    def recordings(self) -> dict[int, Range | None]:
        """First start to last end of the work on every device."""
        from workbench.analysis.window import recording

        return {d: recording(self.trace, d) for d in self.device_indices}

    @cached_property
    def window(self) -> Range | None:
        """The window of the first device; of the host where no device was recorded."""
        from workbench.analysis.window import window

        if self.device_indices:
            return self.windows[self.device_indices[0]]
        return window(self.trace, None, self.steps, self.launches)

    @cached_property
    def host_window(self) -> Range | None:
        """The window on the host's clock, which differs from the device's by a small constant."""
        if self.window is None or not self.device_indices:
            return self.window
        return self.window.shifted(self.launches.clock_offset.get(self.device_indices[0], 0))

    @cached_property
    def device_time(self) -> dict[int, DeviceTime]:
        """Busy, idle and exposed time of every device in its window."""
        return {d: self._time(d, r) for d, r in self.windows.items() if r is not None}

    @cached_property
    def recorded_time(self) -> dict[int, DeviceTime]:
        """The same over the whole recording, comparable with other tools."""
        return {d: self._time(d, r) for d, r in self.recordings.items() if r is not None}

    def _time(self, device: int, span: Range) -> DeviceTime:
        from workbench.analysis.device_time import device_time

        return device_time(self.trace, device, span)

    @cached_property
    def idle(self) -> dict[int, Idle]:
        """Why every device was idle in its window."""
        return {d: self._idle(d, r) for d, r in self.windows.items() if r is not None}

    @cached_property
    def idle_causes(self) -> dict[int, dict[str, int | None]]:
        """Per device its idle time by cause, without the pieces that the time is made of."""
        return {device: each.by_cause for device, each in self.idle.items()}

    @cached_property
    def recorded_idle(self) -> dict[int, Idle]:
        """Why every device was idle in the recording."""
        return {d: self._idle(d, r) for d, r in self.recordings.items() if r is not None}

    @cached_property
    def evidence(self) -> Evidence:
        """The host side of the trace, nested and classified."""
        from workbench.analysis.evidence import gather_evidence

        return gather_evidence(self.trace, self.launches, self.steps)

    def _idle(self, device: int, span: Range) -> Idle:
        from workbench.analysis.idle import attribute_idle

        return attribute_idle(
            self.trace, device, span, self.steps, self.launches, evidence=self.evidence
        )

    @cached_property
    def host_breakdown(self) -> dict[str, int | None] | None:
        """Where the loop's thread spends the window; only without recorded device work."""
        from workbench.analysis.host import host_breakdown

        if self.device_indices or self.window is None:
            return None
        return host_breakdown(self.trace, self.window, self.steps)

    @cached_property
    def input_wait(self) -> InputWait | None:
        """Waiting in the loader inside the window."""
        from workbench.analysis.input_wait import input_wait

        return (
            None
            if self.host_window is None
            else input_wait(self.trace, self.host_window, self.steps)
        )

    @property
    def exposed_input_ns(self) -> int | None:
        """The part of the breakdown that goes to input."""
        if self.device_indices:
            return self.idle_causes.get(self.device_indices[0], {}).get("input")
        if self.input_wait is None or self.host_breakdown is None:
            return None
        return self.host_breakdown.get("input")

    @cached_property
    def split_of_input(self) -> Stalls | Unseen:
        """The exposed wait for input, divided, or why it cannot be."""
        from workbench.run.stalls import find_stalls

        return find_stalls(self, self.recorded_input)

    @property
    def stalls(self) -> Stalls | None:
        """The exposed wait for input by the stage of the batch that was waited for."""
        from workbench.analysis.stalls.parts import Unseen

        return None if isinstance(self.split_of_input, Unseen) else self.split_of_input

    @cached_property
    def collectives(self) -> Collectives | None:
        """Every collective; ``None`` when the trace cannot tell whether there were any."""
        from workbench.analysis.collectives import find_collectives

        if self.voids("devices"):
            return None
        return find_collectives(self.trace, self.launches, self.steps, self.window)

    @property
    def transfer(self) -> NDArray[np.int64] | None:
        """Per collective its transfer as all ranks tell it; ``None`` for one rank alone."""
        return None if self.job is None else self.job.transfer_of(self)

    @property
    def collective_windows(self) -> dict[int, Range | None]:
        """The windows that collectives are given for: of every device, or of the host."""
        from workbench.analysis.collectives import HOST

        return self.windows if self.device_indices else {HOST: self.window}

    @property
    def communication(self) -> pd.DataFrame | None:
        """Collectives in the window by kind and group, wait and transfer told by all ranks."""
        from workbench.run.collectives import communication

        return communication(self)

    @property
    def collective_calls(self) -> pd.DataFrame | None:
        """The collectives of the window, one row a call."""
        from workbench.run.collectives import calls

        return calls(self)

    def exposed_communication(self, device: int) -> ExposedCommunication:
        """The exposed communication of one device in its window, in its two parts."""
        from workbench.run.collectives import exposed

        return exposed(self, device)

    def breakdown(self, device: int) -> dict[str, int | None]:
        """Parts of a device's window in nanoseconds that sum to it exactly."""
        exposed = self.exposed_communication(device)
        time = self.device_time[device]
        return {
            "compute": time.compute,
            "exposed_communication_wait": exposed.wait,
            "exposed_communication_transfer": exposed.transfer,
            "exposed_memory": time.exposed_memory,
            **self.idle_causes[device],
        }

    @cached_property
    def part(self) -> RankPart:
        """What a comparison with other ranks needs of this one."""
        from workbench.run.part import part_of

        return part_of(self)

    @cached_property
    def kernels(self) -> pd.DataFrame | None:
        """Kernels by name, each device's in its window; ``None`` when no device was recorded."""
        from workbench.analysis.kernels import kernel_table

        if not self.device_indices:
            return None
        known = any(span is not None for span in self.windows.values())
        return kernel_table(self.trace, self.windows if known else None)

    @cached_property
    def operators(self) -> pd.DataFrame | None:
        """Framework operators by name in the window; ``None`` when none was recorded at all."""
        from workbench.analysis.causes import operator_rows
        from workbench.analysis.operators import operator_table

        if not operator_rows(self.trace).any():
            return None
        return operator_table(self.trace, self.launches, self.host_window)

    @cached_property
    def launch_statistics(self) -> LaunchStatistics | None:
        """Launches and queue of the first device."""
        from workbench.analysis.queue import launch_statistics

        if not self.device_indices:
            return None
        return launch_statistics(self.trace, self.steps, self.launches, self.device_indices[0])

    @cached_property
    def memory(self) -> MemorySummary | None:
        """Peak memory and device allocations, where they were recorded."""
        from workbench.run.memory import summary_of

        return summary_of(self)

    @cached_property
    def memory_devices(self) -> tuple[DeviceMemory, ...]:
        """Every memory: peak, who holds it, steps, growth; the fullest accelerator first."""
        from workbench.run.memory import memory_of

        return memory_of(self)

    @cached_property
    def post_mortems(self) -> tuple[PostMortem, ...]:
        """What happened at each out-of-memory event of a snapshot."""
        from workbench.run.memory import post_mortems_of

        return post_mortems_of(self)
