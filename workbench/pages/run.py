"""A whole Run as HTML and as text, in the order in which people look."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.pages.assets import page
from workbench.pages.escape import escape, visible
from workbench.pages.findings import SILENT, findings_section, findings_text
from workbench.pages.parts import parts_html, parts_text
from workbench.pages.table import table_html, table_text
from workbench.pages.view import RunView
from workbench.units import NOT_MEASURED

PartName = Literal["verdict", "findings", "parts", "details", "measured"]

PARTS: tuple[PartName, ...] = ("verdict", "findings", "parts", "details", "measured")
"""The order of the page; a report puts its charts before the details."""


def run_html(view: RunView) -> str:
    """The verdict, the worst findings, where a step goes; details and method folded away."""
    return page("".join(section_html(view, name) for name in _said(view)))


def run_text(view: RunView) -> str:
    """The same for a terminal."""
    return "\n\n".join(text for name in _said(view) if (text := section_text(view, name)))


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
    ceilings = "" if view.ceilings is None else f"<p>{escape(view.ceilings)}</p>"
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
    rows = tuple(view.not_measured.items())
    return f"<details><summary>{title}</summary>{_list_html(rows)}</details>"


def _list_html(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    made = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f"<dl>{made}</dl>"


def _verdict_text(view: RunView) -> str:
    lines = (view.title, view.verdict, view.ceilings)
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
        f"{NOT_MEASURED}: {visible(n)}: {visible(why)}" for n, why in view.not_measured.items()
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
