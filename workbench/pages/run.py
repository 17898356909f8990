"""A whole Run as HTML and as text, in the order in which people look."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.pages.assets import page
from workbench.pages.escape import escape, visible
from workbench.pages.findings import (
    NONE,
    SILENT,
    brief_text,
    findings_section,
    findings_text,
    shared,
)
from workbench.pages.parts import parts_html, parts_text
from workbench.pages.table import table_html, table_text
from workbench.pages.view import RunView
from workbench.units import NOT_MEASURED, count_text

PartName = Literal["verdict", "findings", "parts", "details", "measured"]

PARTS: tuple[PartName, ...] = ("verdict", "findings", "parts", "details", "measured")
"""The order of the page; a report puts its charts before the details."""

WIDTH = 80
"""Columns of a terminal that the text keeps to."""
LINES = 40
"""What a terminal shows at once: the text ends before it, and says where the rest is."""
FIRST = 3
"""How many findings, notes and failed checks a terminal gets at most, the worst first."""


def run_html(view: RunView) -> str:
    """The verdict, the worst findings, where a step goes; details and method folded away."""
    return page("".join(section_html(view, name) for name in _said(view)))


def run_text(view: RunView) -> str:
    """What matters for a terminal, in 40 lines of 80 columns, and where the rest is.

    Findings come without their evidence, tables not at all. What does not fit is counted.
    """
    findings, places = min(FIRST, len(view.findings)), len(view.breakdowns)
    text = _brief(view, findings, places)
    while len(text.splitlines()) > LINES and (places > 1 or findings > 1):
        if places > 1:
            places -= 1
        else:
            findings -= 1
        text = _brief(view, findings, places)
    return text


def _brief(view: RunView, findings: int, places: int) -> str:
    """The text with so many findings, and so many places where time goes."""
    parts = [_wrapped(_verdict_text(view).splitlines())]
    if view.findings:
        told = visible(view.verdict)
        parts += [
            brief_text(each, width=WIDTH, told=told, also=also)
            for each, also in zip(
                view.findings[:findings], shared(view.findings[:findings]), strict=True
            )
        ]
    elif SILENT not in view.verdict:
        parts.append(NONE)
    parts += [parts_text(each) for each in view.breakdowns[:places]]
    said = [f"cannot be trusted: {each}" for each in view.trust[:FIRST]]
    said += [f"note: {text}" for name, text in view.measured if name == "note"][:FIRST]
    parts.append(_wrapped([visible(line) for line in said]))
    parts.append(_wrapped(list(_pointers(view, findings, places))))
    return "\n\n".join(part for part in parts if part)


def _pointers(view: RunView, findings: int, places: int) -> Iterator[str]:
    """Where what was left out can be read, each with what it holds."""
    left = len(view.findings) - findings
    if view.findings:
        more = f", and {count_text(left)} more" if left else ""
        yield f"More: run.findings has the evidence{more}"
    if len(view.breakdowns) > places:
        rest = count_text(len(view.breakdowns) - places)
        yield f'More: run.part("parts") has the other ranks or devices ({rest})'
    if view.tables:
        yield 'More: run.part("details") has the tables, wb.report(run, "report.html") the charts'
    missing = ", ".join(visible(name).replace("_", " ") for name in view.not_measured)
    if len(set(view.not_measured.values())) == 1 < len(view.not_measured):
        missing = f"{count_text(len(view.not_measured))} tables"
    if view.measured or missing:
        why = f", and why this was {NOT_MEASURED}: {missing}" if missing else ""
        yield f'More: run.part("measured") has settings and versions{why}'


def _wrapped(lines: Sequence[str]) -> str:
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines
    )


def _said(view: RunView) -> tuple[PartName, ...]:
    """The parts of the page; that no rule fires is said once, where the verdict says it."""
    told = not view.findings and SILENT in view.verdict
    return tuple(name for name in PARTS if not (told and name == "findings"))


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the page as a cell's output."""

    view: RunView
    name: PartName

    def __repr__(self) -> str:
        return section_text(self.view, self.name)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": page(section_html(self.view, self.name)), "text/plain": repr(self)}


def section_html(view: RunView, name: PartName) -> str:
    """One part, without style."""
    return _HTML[name](view)


def section_text(view: RunView, name: PartName) -> str:
    """One part for a terminal; empty when there is nothing to say."""
    return _TEXT[name](view)


def _verdict_html(view: RunView) -> str:
    ceilings = "".join(
        f"<p>{escape(line)}</p>" for line in (view.headline, view.ceilings) if line is not None
    )
    return (
        f'<p class="wb-quiet">{escape(view.title)}</p>'
        f'<p class="wb-verdict" role="heading" aria-level="2">{escape(view.verdict)}</p>{ceilings}'
    )


def _findings_html(view: RunView) -> str:
    return f"<section><h3>Findings</h3>{findings_section(view.findings)}</section>"


def _parts_html(view: RunView) -> str:
    if not view.breakdowns:
        return ""
    made = "".join(parts_html(each) for each in view.breakdowns)
    return f"<section><h3>Where a step goes</h3>{made}</section>"


def _details_html(view: RunView) -> str:
    if not view.tables:
        return ""
    made = "".join(table_html(table) for table in view.tables)
    return f"<details><summary>All numbers</summary>{made}</details>"


def _measured_html(view: RunView) -> str:
    made = _list_html(view.measured)
    if view.trust:
        items = "".join(f"<p>{escape(sentence)}</p>" for sentence in view.trust)
        made += f"<h3>What cannot be trusted</h3>{items}"
    told = f"<details><summary>How it was measured</summary>{made}</details>" if made else ""
    return told + _not_measured_html(view)


def _not_measured_html(view: RunView) -> str:
    """What is missing in one line, and folded away below it why."""
    if not view.not_measured:
        return ""
    names = ", ".join(name.replace("_", " ") for name in view.not_measured)
    title = f"{NOT_MEASURED.capitalize()}: {escape(names)}"
    rows = tuple((", ".join(names), why) for why, names in _by_reason(view).items())
    return f"<details><summary>{title}</summary>{_list_html(rows)}</details>"


def _by_reason(view: RunView) -> dict[str, list[str]]:
    """What is missing, by why: a reason is said once."""
    found: dict[str, list[str]] = {}
    for name, why in view.not_measured.items():
        found.setdefault(why, []).append(name.replace("_", " "))
    return found


def _list_html(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    made = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f"<dl>{made}</dl>"


def _verdict_text(view: RunView) -> str:
    lines = (view.title, view.verdict, view.headline, view.ceilings)
    return "\n".join(visible(line) for line in lines if line is not None)


def _findings_text(view: RunView) -> str:
    return findings_text(view.findings)


def _parts_text(view: RunView) -> str:
    return "\n\n".join(parts_text(each) for each in view.breakdowns)


def _details_text(view: RunView) -> str:
    return "\n\n".join(table_text(table) for table in view.tables)


def _measured_text(view: RunView) -> str:
    lines = [f"{visible(name)}: {visible(text)}" for name, text in view.measured]
    lines += [f"cannot be trusted: {visible(sentence)}" for sentence in view.trust]
    lines += [
        f"{NOT_MEASURED}: {visible(', '.join(names))}: {visible(why)}"
        for why, names in _by_reason(view).items()
    ]
    return "\n".join(lines)


_HTML = {
    "verdict": _verdict_html,
    "findings": _findings_html,
    "parts": _parts_html,
    "details": _details_html,
    "measured": _measured_html,
}
_TEXT = {
    "verdict": _verdict_text,
    "findings": _findings_text,
    "parts": _parts_text,
    "details": _details_text,
    "measured": _measured_text,
}
