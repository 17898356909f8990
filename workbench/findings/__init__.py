"""Rules that turn measured facts into findings, worst first."""

from collections.abc import Callable

from workbench.findings.exposed_communication import exposed_communication
from workbench.findings.finding import (
    SEVERITIES,
    CommunicationFacts,
    DeviceFacts,
    Facts,
    Finding,
    StragglerFacts,
)
from workbench.findings.input_bound import input_bound
from workbench.findings.noisy_machine import noisy_machine
from workbench.findings.straggler import straggler
from workbench.findings.untrusted_profile import untrusted_profile

Rule = Callable[[Facts], Finding | None]

RULES: tuple[Rule, ...] = (
    untrusted_profile,
    noisy_machine,
    input_bound,
    exposed_communication,
    straggler,
)
"""Every rule, in the order in which findings of equal weight are listed."""

__all__ = [
    "RULES",
    "CommunicationFacts",
    "DeviceFacts",
    "Facts",
    "Finding",
    "StragglerFacts",
    "diagnose",
    "weight",
]


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """All findings for one rank, worst first; a rule that stays silent adds nothing."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    return tuple(sorted(found, key=weight))


def weight(finding: Finding) -> tuple[int, int, float]:
    """What sorts findings worst first: severity, verdict, then share of the window."""
    verdicts = {"yes": 0, "cannot_tell": 1, "no": 2}
    severity = -SEVERITIES.index(finding.severity)
    return (severity, verdicts[finding.verdict], -(finding.share_of_window or 0.0))
