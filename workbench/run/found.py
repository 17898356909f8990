"""What the rules find in a Run, over all of its ranks."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.findings import Finding, Origin, diagnose, merge_ranks, weight

if TYPE_CHECKING:
    from workbench.run.run import Run


class Findings(tuple[Finding, ...]):
    """Findings, worst first; an ordinary tuple that shows itself well."""

    __slots__ = ()

    @property
    def verifiable(self) -> Findings:
        """Those that ``wb.verify`` can measure: each setting once, for its worst finding."""
        seen: list[dict[str, Any]] = []
        kept: list[Finding] = []
        for finding in self:
            setting = dict(finding.setting or {})
            if setting and setting not in seen:
                seen.append(setting)
                kept.append(finding)
        return Findings(kept)

    def __repr__(self) -> str:
        from workbench.pages.findings import findings_text

        return findings_text(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.findings import findings_html, findings_text

        return {"text/html": findings_html(self), "text/plain": findings_text(self)}


def findings_of(run: Run) -> Findings:
    """The findings of a Run; what several ranks show is one, the worst rank's."""
    from workbench.findings.torch_calls import in_profiler_words, in_torch_words, torch_calls
    from workbench.run.facts import gather, is_capture
    from workbench.run.loader_facts import loader_facts

    found: list[tuple[str, tuple[Finding, ...]]] = []
    for rank in run.ranks:
        label = rank.source if rank.rank is None else f"rank {rank.rank}"
        loader = loader_facts(run) if rank is run.ranks[0] else None
        found.append((label, diagnose(gather(rank, run.record, loader))))
        if run.job is not None:
            run.job.rest(rank)
    origin = origin_of(run)
    merged = tuple(replace(each, origin=origin) for each in merge_ranks(found))
    if run.record is None or is_capture(run.record):
        merged = tuple(
            replace(
                each,
                call=torch_calls(each.setting, device=_device_type(run)),
                advice=in_torch_words(each.advice),
            )
            for each in merged
        )
    if run.record is None:
        merged = tuple(replace(each, advice=in_profiler_words(each.advice)) for each in merged)
    return Findings(sorted(merged, key=weight))


def _device_type(run: Run) -> str:
    """The type of the device that the loop ran on, as torch names it."""
    from workbench.findings.torch_calls import device_type

    if run.record is not None:
        return device_type(str(run.record.effective.get("device") or "cpu"))
    rank = run.ranks[0]
    used = set(rank.device_indices)
    return next((device_type(d.type) for d in rank.trace.devices if d.index in used), "cpu")


def origin_of(run: Run) -> Origin:
    """What is known of the loop that the findings speak of."""
    from workbench.run.facts import is_capture

    record = run.record
    if record is None:
        return Origin(
            run=run.name,
            settings=None,
            effective={},
            environment={},
            median_step_ns=None,
            mean_step_ns=None,
        )
    timings = record.timings
    steady = [] if timings is None else timings.step_ns[timings.warmup :]
    return Origin(
        run=run.name,
        settings=None if is_capture(record) else record.settings,
        effective=record.effective,
        environment=record.environment,
        median_step_ns=statistics.median(steady) if steady else None,
        mean_step_ns=statistics.fmean(steady) if steady else None,
    )
