"""What a report says to programs: ``summary.json``, ``summary.md`` and ``junit.xml``."""

import json
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from workbench.units import NOT_MEASURED, share_text, time_text

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.run.compare import Comparison
    from workbench.run.run import Run

_NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FILES = ("summary.json", "summary.md", "junit.xml")
HEAD = "| finding | severity | of the step | saves a step at most |"
FIRST = 3
"""Findings in a comment on a pull request, the worst first."""


def write_summary(found: "Run | Comparison", folder: str | Path | None) -> None:
    """Write the three files of a Run or a comparison into a folder; nothing without one."""
    if folder is None:
        return
    from workbench.reporting.privacy import guarded

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    document = json.dumps(document_of(found), indent=1, allow_nan=False, default=str)
    texts = (document, markdown(found), junit(found))
    for name, text in zip(FILES, texts, strict=True):
        _write_whole(place / name, guarded(text))


def document_of(found: "Run | Comparison") -> dict[str, Any]:
    """``workbench.summary/1`` of a Run, ``workbench.compare/1`` of a comparison."""
    from workbench.run.run import Run

    made: dict[str, Any] = found.summary.to_json() if isinstance(found, Run) else found.to_json()
    return made


def markdown(found: "Run | Comparison") -> str:
    """A comment for a pull request."""
    from workbench.run.run import Run

    lines = _of_run(found) if isinstance(found, Run) else _of_comparison(found)
    return "\n".join(lines).rstrip() + "\n"


def _of_run(run: "Run") -> list[str]:
    from workbench.run.view import view

    lines = [f"**{_text(run.name)}: {_text(view(run).verdict)}**", ""]
    if run.findings:
        lines += [HEAD, "|---|---|---|---|"]
        lines += [_row(each) for each in run.findings[:FIRST]]
        left = len(run.findings) - FIRST
        lines += ["", f"{left} more findings are in the report." if left > 0 else ""]
    steps = run.summary.to_json()["ranks"][0].get("steps")
    if steps:
        median = steps["time_us"]["median"]
        told = NOT_MEASURED if median is None else time_text(median * 1000)
        lines.append(f"Median step under the profiler: {told} of {steps['count']} steps.")
    return lines


def _row(finding: "Finding") -> str:
    saving = finding.saving_ns_per_step_at_most
    cells = (
        f"{finding.code} {finding.title}",
        finding.severity,
        share_text(finding.share_of_window),
        NOT_MEASURED if saving is None else time_text(saving),
    )
    return f"| {' | '.join(_text(cell) for cell in cells)} |"


def _of_comparison(found: "Comparison") -> list[str]:
    lines = [f"**{_text(found.sentence)}**", ""]
    lines += ["| | " + " | ".join((_text(found.first), _text(found.second))) + " |"]
    lines += ["|---|---|---|"]
    lines += [f"| {' | '.join(_text(cell) for cell in row[:3])} |" for row in found.rows()]
    return [*lines, "", *(f"- {_text(note)}" for note in found.notes)]


def _text(text: object) -> str:
    """Text that is no markup: names come from folders and traces."""
    made = " ".join(str(text).split())
    for sign in "\\`*_{}[]|#":
        made = made.replace(sign, f"\\{sign}")
    return made.replace("<", "&lt;").replace(">", "&gt;")


def junit(found: "Run | Comparison") -> str:
    """Test cases: of a Run a finding each, of a comparison its step time.

    A critical finding, and a head that is slower, are failures; what cannot be told is skipped.
    """
    from workbench.run.run import Run

    cases = _cases(found) if isinstance(found, Run) else [_change(found)]
    suite = ElementTree.Element("testsuite", name="workbench report", tests=str(len(cases)))
    counted = {"failure": 0, "skipped": 0}
    for kind, name, outcome, message in cases:
        one = ElementTree.SubElement(suite, "testcase", classname=kind, name=_xml(name))
        if outcome in counted:
            counted[outcome] += 1
            ElementTree.SubElement(one, outcome, message=_xml(message))
    suite.set("failures", str(counted["failure"]))
    suite.set("skipped", str(counted["skipped"]))
    suite.set("errors", "0")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, "unicode")


def _cases(run: "Run") -> list[tuple[str, str, str, str]]:
    made = [
        (
            "workbench.findings",
            f"{each.code} {each.title}",
            "failure"
            if each.severity == "critical" and each.verdict == "yes"
            else "skipped"
            if each.verdict == "cannot_tell"
            else "passed",
            each.advice,
        )
        for each in run.findings
    ]
    trusted = "passed" if run.trust.ok else "failure"
    why = "; ".join(each.message for each in run.trust.violations)
    return [("workbench.trust", "the trace can be trusted", trusted, why), *made]


def _change(found: "Comparison") -> tuple[str, str, str, str]:
    outcome = {"slower": "failure", "cannot_tell": "skipped"}.get(found.verdict, "passed")
    return "workbench.compare", "step time", outcome, found.sentence


def _xml(text: str) -> str:
    """Without what XML cannot hold at all."""
    return _NO_XML.sub("", text)


def _write_whole(path: Path, text: str) -> None:
    waiting = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        waiting.write_text(text, encoding="utf-8")
        waiting.replace(path)
    finally:
        waiting.unlink(missing_ok=True)
