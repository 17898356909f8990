"""A gate as a page: the sentence, what was judged, and how."""

from typing import TYPE_CHECKING

from workbench.gate.text import HEAD, row
from workbench.pages.assets import page, stylesheet
from workbench.pages.escape import escape
from workbench.pages.table import Column, Table, table_html
from workbench.units import share_text

if TYPE_CHECKING:
    from workbench.gate.gate import Gate
    from workbench.gate.judging import Judged

SHUT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
"""The page fetches nothing, and runs no script."""


def gate_html(gate: "Gate") -> str:
    """The fragment for a notebook: what failed or cannot be told stands open, the rest folded."""
    return page(_body(gate))


def gate_page(gate: "Gate") -> str:
    """A whole file that needs no other and runs no script."""
    title = escape(f"Gate of {gate.head}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{SHUT}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
        f"<style>{stylesheet()} body {{ margin: 0; background: var(--wb-paper); }}"
        ".wb.wb main { max-width: 1080px; margin: 0 auto; padding: 32px 24px; }</style></head>"
        f'<body class="wb"><main><h1>{title}</h1>{_body(gate)}</main></body></html>\n'
    )


def _body(gate: "Gate") -> str:
    how = "in turns" if gate.interleaved else "one after the other"
    open_rows = [each for each in gate.judged if each.verdict != "pass"]
    held = [each for each in gate.judged if each.verdict == "pass"]
    shown = [each for each in held if each.metric.leads]
    folded = [each for each in held if not each.metric.leads]
    told = [each for each in open_rows if each.reason]
    reasons = "".join(f"<p>{escape(each.key)}: {escape(each.reason or '')}</p>" for each in told)
    notes = "".join(f'<p class="wb-quiet">{escape(note)}</p>' for note in gate.notes)
    return (
        f'<p class="wb-verdict" role="heading" aria-level="2">{escape(gate.sentence)}</p>'
        f"{_table([*open_rows, *shown])}{reasons}"
        + (
            f'<details class="wb-folded"><summary>{len(folded)} more metrics held</summary>'
            f"{_table(folded)}</details>"
            if folded
            else ""
        )
        + f'<p class="wb-quiet">base: {escape(gate.base or "none")} · head: {escape(gate.head)} · '
        f"measured {how} · at most {share_text(gate.level)} of gates over unchanged code fail</p>"
        f"{notes}"
    )


def _table(judged: "list[Judged]") -> str:
    if not judged:
        return ""
    columns = tuple(Column(name=name or "verdict") for name in HEAD)
    made = Table(caption="What was judged", columns=columns, rows=tuple(map(row, judged)))
    return table_html(made, caption=False)
