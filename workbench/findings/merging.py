"""The findings of several ranks as one list: what many ranks show is said once."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from workbench.findings.finding import Finding
from workbench.units import share_text

UNTRUSTED = "WB901"
"""Ranks may fail different checks; only the same ones are one finding."""


def merge_ranks(found: Sequence[tuple[str, Sequence[Finding]]]) -> tuple[Finding, ...]:
    """One finding per code and verdict, the worst rank's, with all ranks in its evidence.

    Args:
        found: What each rank is called, such as "rank 3", and its findings.
    """
    groups: dict[Hashable, list[tuple[str, Finding]]] = {}
    for label, findings in found:
        for finding in findings:
            groups.setdefault(_key(finding), []).append((label, finding))
    return tuple(_merged(group) for group in groups.values())


def _key(finding: Finding) -> Hashable:
    failed: Hashable = None
    if finding.code == UNTRUSTED:
        failed = tuple(sorted(finding.evidence.get("violations", ())))
    return finding.code, finding.verdict, failed


def _merged(group: Sequence[tuple[str, Finding]]) -> Finding:
    if len(group) == 1:
        return group[0][1]
    from workbench.findings import weight

    label, worst = min(group, key=lambda pair: weight(pair[1]))
    shares = {finding.share_of_window for _, finding in group}
    most = f" (most on {label})" if len(shares) > 1 else ""
    devices = {finding.device for _, finding in group}
    return replace(
        worst,
        title=f"On {len(group)} ranks{most}: {worst.title}",
        evidence={
            **worst.evidence,
            "worst_rank": worst.rank,
            "ranks": [
                each
                if finding.share_of_window is None
                else f"{each} {share_text(finding.share_of_window)}"
                for each, finding in group
            ],
        },
        rank=None,
        device=worst.device if len(devices) == 1 else None,
    )
