"""The steps of one rank replayed: their critical path, and what each change could save."""

from __future__ import annotations

import statistics
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from workbench.analysis.replay.answers import WhatIf
    from workbench.analysis.replay.path import CriticalPath
    from workbench.analysis.replay.replay import Replay
    from workbench.analysis.replay.scenario import Scenario
    from workbench.analysis.replay.single_thread import ThreadReplay
    from workbench.pages.static import StaticFigure
    from workbench.run.rank import RankAnalysis
    from workbench.store.record import RunRecord


def step_of_record(record: RunRecord | None) -> float | None:
    """Median step time without the profiler, warm-up left out; ``None`` where none was measured."""
    if record is None or record.timings is None:
        return None
    steady = record.timings.step_ns[record.timings.warmup :]
    return float(statistics.median(steady)) if steady else None


class Replayed:
    """Answers of the replay for one rank; ``None`` where it cannot tell."""

    def __init__(self, rank: RankAnalysis) -> None:
        self._rank = rank

    def release(self) -> None:
        """Forget what is as large as the trace."""
        self.__dict__.pop("steps", None)

    @cached_property
    def steps(self) -> Replay | ThreadReplay | None:
        """The steps after warm-up, ready to be replayed."""
        return self._of(None)

    def _of(self, step: int | None) -> Replay | ThreadReplay | None:
        from workbench.analysis.replay.answers import replay_steps, reproduction
        from workbench.analysis.replay.late_ranks import transfer_of

        rank = self._rank
        if any(rank.voids(what) for what in ("causes", "devices", "step_time")):
            return None
        # Whose transfers are not known keeps its collectives as long as they were.
        transfer = transfer_of(rank.trace, rank.collectives, rank.transfer)
        found = replay_steps(rank.evidence, rank.steps, step, transfer_of=transfer)
        return found if found is not None and reproduction(found).ok else None

    @property
    def reason(self) -> str:
        """Why there is no answer."""
        rank = self._rank
        if rank.steps is None or not len(rank.steps):
            return "the trace marks no complete training step"
        if any(rank.voids(what) for what in ("causes", "devices", "step_time")):
            return "cannot tell: the trace fails the checks that its causes of idle rest on"
        if rank.device_indices and not (rank.launches.launch >= 0).any():
            return "the trace joins no device work to the call that launched it"
        return "cannot tell: too much of the steps is unexplained by what was recorded"

    @cached_property
    def path(self) -> CriticalPath | None:
        """The critical path of the step whose time is nearest to the median."""
        from workbench.analysis.replay.answers import critical_path
        from workbench.analysis.replay.span import median_step

        if self._rank.steps is None or self.outcomes is None:
            return None
        found = self._of(median_step(self._rank.steps))
        return None if found is None else critical_path(found)

    @cached_property
    def path_table(self) -> pd.DataFrame | None:
        """The critical path, one row a piece."""
        from workbench.analysis.replay.tables import path_table

        return None if self.path is None else path_table(self._rank.trace, self.path)

    @cached_property
    def outcomes(self) -> tuple[WhatIf, ...] | None:
        """What a step would take, for everything that is worth asking; largest saving first."""
        from workbench.analysis.replay.answers import scenarios

        if self.steps is None:
            return None
        found = [self.what_if(each) for each in scenarios(self.steps, self._absent)]
        known = [each for each in found if each is not None]
        return tuple(sorted(known, key=lambda each: -each.saving_ns))

    def what_if(self, scenario: Scenario) -> WhatIf | None:
        """What a step would take under a scenario of one's own."""
        from workbench.analysis.replay.answers import what_if

        if self.steps is None:
            return None
        return what_if(self.steps, scenario, record_step_ns=self._rank.record_step_ns)

    def of_precisions(self) -> dict[str, float | None]:
        """What a lower precision saves a step of a device at most, by the scenarios' names."""
        from workbench.analysis.replay.replay import Replay
        from workbench.analysis.replay.scenario import half_precision, tf32_products

        steps = self.steps
        if not isinstance(steps, Replay):
            return {}
        asked = (half_precision(steps.families), tf32_products())
        found = {each.name: self.what_if(each) for each in asked}
        return {name: None if each is None else each.saving_ns for name, each in found.items()}

    def chart(self) -> StaticFigure:
        """The critical path as a lane, and the bounds as bars."""
        from workbench.analysis.replay.path import PATH_KINDS
        from workbench.figures.critical_path import Saving
        from workbench.pages.replay import critical_path_chart

        path = self.path
        if path is None:
            return critical_path_chart(
                None, None, None, kinds=PATH_KINDS, by_kind={}, reason=f"{self.reason}."
            )
        return critical_path_chart(
            path.start,
            path.end,
            path.kind,
            kinds=PATH_KINDS,
            by_kind=path.by_kind,
            savings=[
                Saving(
                    each.name,
                    each.label,
                    each.saving_ns,
                    self._rank.record_step_ns if each.capped else None,
                )
                for each in self.outcomes or ()
            ],
            step=path.numbers[0],
        )

    def document(self) -> dict[str, Any]:
        """The answers in microseconds, for ``workbench analyze --json``; null: cannot tell."""
        path, outcomes = self.path, self.outcomes
        return {
            "critical_path": None
            if path is None
            else {
                "step": path.numbers[0],
                "step_us": path.length / 1000,
                "parts_us": {kind: ns / 1000 for kind, ns in path.by_kind.items()},
            },
            "what_if": None
            if outcomes is None
            else [
                {
                    "scenario": each.name,
                    "step_us_at_least": each.step_ns / 1000,
                    "saving_us_at_most": each.saving_ns / 1000,
                    "capped": each.capped,
                }
                for each in outcomes
            ],
        }

    @property
    def bounds(self) -> Mapping[str, float | None] | None:
        """What a step saves at most, by cause; what the findings may claim."""
        from workbench.analysis.replay.answers import bounds_of

        return None if self.outcomes is None else bounds_of(self.outcomes)

    @property
    def _absent(self) -> set[str]:
        """Causes that no device's trace can show."""
        idle = self._rank.idle_causes.values()
        absent = [{cause for cause, ns in each.items() if ns is None} for each in idle]
        if absent:
            return set.intersection(*absent)
        parts = self._rank.host_breakdown or {}
        return {part for part, ns in parts.items() if ns is None}
