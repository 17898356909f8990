"""Findings as HTML and as text: worst first, each with evidence, bound and next experiment."""

import textwrap
from collections.abc import Sequence
from typing import Any

from workbench.findings.finding import Finding
from workbench.findings.gain import bound
from workbench.pages.assets import page
from workbench.pages.escape import escape, visible
from workbench.pages.evidence import evidence_rows, value_text

FIRST = 3
"""How many are shown before the rest is folded away."""

NONE = "No finding: none of the rules of this version fires on what was measured."

SILENT = "No rule "
"""Begins what a verdict says where nothing fires: a whole page does not say it a second time."""

_SEVERITY = {"critical": "■ critical", "warning": "◆ warning", "info": "○ note"}
_VERDICT = {"cannot_tell": "≈ cannot tell", "no": "✓ ruled out"}


def findings_html(findings: Sequence[Finding]) -> str:
    """All findings as one cell's output."""
    return page(findings_section(findings))


def findings_section(findings: Sequence[Finding]) -> str:
    """The findings without style: three open, the rest folded away."""
    if not findings:
        return f'<p class="wb-quiet">{NONE}</p>'
    told = list(zip(findings, shared(findings), strict=True))
    first, rest = told[:FIRST], told[FIRST:]
    made = _list(first)
    if rest:
        more = f"{len(rest)} more finding{'s' if len(rest) > 1 else ''}"
        made += f"<details><summary>{more}</summary>{_list(rest)}</details>"
    return made


def shared(findings: Sequence[Finding]) -> list[str]:
    """For each finding what to say of its setting: that an earlier one has the same, or nothing."""
    first: list[tuple[dict[str, Any], str]] = []
    said = []
    for finding in findings:
        setting = dict(finding.setting or {})
        code = next((code for known, code in first if known == setting), None)
        said.append(f"as for {code}: one measurement answers both" if setting and code else "")
        if setting and code is None:
            first.append((setting, finding.code))
    return said


def findings_text(findings: Sequence[Finding]) -> str:
    """All findings as lines for a terminal."""
    if not findings:
        return NONE
    told = zip(findings, shared(findings), strict=True)
    return "\n\n".join(_text(finding, also) for finding, also in told)


def brief_text(finding: Finding, *, width: int, told: str = "", also: str = "") -> str:
    """A finding without its evidence: what it is, what to gain, what to do.

    Args:
        finding: The finding.
        width: Columns of the terminal.
        told: What was said before; a title that stands there is not repeated.
        also: What is said behind its setting.
    """
    about = " · ".join(part for part in (finding.code, where(finding)) if part)
    title = visible(finding.title)
    said = "as said above" if title and title in told else title
    lines = [f"{mark(finding)}  {said}  [{about}]"]
    gain, setting = bound(finding), setting_text(finding)
    if gain is not None:
        lines.append(f"  gain: {gain}")
    lines.append(f"  next: {visible(finding.advice)}")
    if setting is not None:
        lines.append(f"  try: {visible(setting)}" + (f", {also}" if also else ""))
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="    ", break_on_hyphens=False)
        for line in lines
    )


def mark(finding: Finding) -> str:
    """Shape and word: the verdict where it is not a plain yes, else the severity."""
    return _VERDICT.get(finding.verdict) or _SEVERITY[finding.severity]


def where(finding: Finding) -> str:
    """Rank and device that the finding speaks of."""
    parts = []
    if finding.rank is not None:
        parts.append(f"rank {finding.rank}")
    if finding.device is not None:
        parts.append(f"device {finding.device}")
    return ", ".join(parts)


def setting_text(finding: Finding) -> str | None:
    """The switch that answers the finding, as it is typed."""
    if finding.call is not None:
        return finding.call
    if not finding.setting:
        return None
    inside = ", ".join(f"{name}={value!r}" for name, value in finding.setting.items())
    return f"wb.Settings({inside})"


def _list(told: Sequence[tuple[Finding, str]]) -> str:
    return f'<ol class="wb-findings">{"".join(_item(*each) for each in told)}</ol>'


def _item(finding: Finding, also: str = "") -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
        for name, text in evidence_rows(finding.evidence)
    )
    lines = [f'<p class="wb-title">{escape(finding.title)}</p>', f"<p>{escape(finding.advice)}</p>"]
    gain = bound(finding)
    if gain is not None:
        lines.append(f"<p>Gain: {escape(gain)}.</p>")
    setting = setting_text(finding)
    if setting is not None:
        same = f", {escape(also)}" if also else ""
        lines.append(f'<p>Try <code class="wb-name">{escape(setting)}</code>{same}</p>')
    about = " · ".join(part for part in (finding.code, where(finding)) if part)
    lines.append(f"<details><summary>Evidence, {escape(about)}</summary><dl>{rows}</dl></details>")
    return (
        f'<li class="wb-finding"><div class="wb-severity">{mark(finding)}</div>'
        f"<div>{''.join(lines)}</div></li>"
    )


def _text(finding: Finding, also: str) -> str:
    about = " · ".join(part for part in (finding.code, where(finding)) if part)
    lines = [f"{mark(finding)}  {visible(finding.title)}  [{about}]"]
    evidence = ", ".join(f"{name} {text}" for name, text in evidence_rows(finding.evidence))
    if evidence:
        lines.append(f"  evidence: {evidence}")
    gain = bound(finding)
    if gain is not None:
        lines.append(f"  gain: {gain}")
    lines.append(f"  next: {visible(finding.advice)}")
    if finding.setting:
        name = "setting" if finding.call is None else "call"
        same = f", {also}" if also else ""
        lines.append(f"  {name}: {value_text(name, setting_text(finding))}{same}")
    return "\n".join(lines)
