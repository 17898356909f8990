"""What the rules find in a Run, over all of its ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.findings import Finding, diagnose, merge_ranks, weight

if TYPE_CHECKING:
    from workbench.run.run import Run


class Findings(tuple[Finding, ...]):
    """Findings, worst first; an ordinary tuple that shows itself well."""

    __slots__ = ()

    def __repr__(self) -> str:
        from workbench.pages.findings import findings_text

        return findings_text(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.findings import findings_html, findings_text

        return {"text/html": findings_html(self), "text/plain": findings_text(self)}


def findings_of(run: Run) -> Findings:
    """The findings of a Run; what several ranks show is one, the worst rank's."""
    from workbench.findings.torch_calls import in_torch_words, torch_calls
    from workbench.run.facts import gather, is_capture
    from workbench.run.loader_facts import loader_facts

    found: list[tuple[str, tuple[Finding, ...]]] = []
    for rank in run.ranks:
        label = rank.source if rank.rank is None else f"rank {rank.rank}"
        loader = loader_facts(run) if rank is run.ranks[0] else None
        found.append((label, diagnose(gather(rank, run.record, loader))))
        if run.job is not None:
            run.job.rest(rank)
    merged = merge_ranks(found)
    if run.record is None or is_capture(run.record):
        merged = tuple(
            replace(each, call=torch_calls(each.setting), advice=in_torch_words(each.advice))
            for each in merged
        )
    return Findings(sorted(merged, key=weight))
