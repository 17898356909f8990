"""A gate as files: ``gate.json``, ``summary.md``, ``junit.xml``, ``gate.html``."""

import json
import math
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from workbench.gate.html import gate_page
from workbench.gate.text import HEAD, MARKS, row
from workbench.version import version

if TYPE_CHECKING:
    from workbench.gate.gate import Gate
    from workbench.gate.judging import Judged

SCHEMA = "workbench.gate/1"
FILES = ("gate.json", "summary.md", "junit.xml", "gate.html")


def gate_document(gate: "Gate") -> dict[str, Any]:
    """Everything as plain data: times in nanoseconds, ``null`` for what is not known."""
    return {
        "schema": SCHEMA,
        "version": version(),
        "verdict": gate.verdict,
        "exit_code": gate.exit_code(),
        "exit_code_strict": gate.exit_code(strict=True),
        "sentence": gate.sentence,
        "level": gate.level,
        "base": gate.base,
        "head": gate.head,
        "interleaved": gate.interleaved,
        "fingerprints": dict(gate.fingerprints),
        "refused": list(gate.refused),
        "machine_changed_by": None if gate.common is None else gate.common.change,
        "notes": list(gate.notes),
        "metrics": [_judged(each) for each in gate.judged],
    }


def _judged(judged: "Judged") -> dict[str, Any]:
    metric = judged.metric
    units = {"time": "ns", "rate": "1/s", "bytes": "bytes", "seconds": "s"}
    numbers = {
        name: _finite(getattr(judged, name))
        for name in (
            *("base", "head", "limit", "allow", "change", "low", "high"),
            *("noise", "smallest_effect", "chance"),
        )
    }
    return {
        "workload": judged.workload or None,
        "metric": metric.name,
        "kind": metric.kind,
        "unit": units.get(metric.unit, "1"),
        "verdict": judged.verdict,
        **numbers,
        "reason": judged.reason,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def summary_markdown(gate: "Gate") -> str:
    """A comment for a pull request: the sentence, and a table of what was judged."""
    shown = [e for e in gate.judged if e.verdict != "pass" or e.metric.kind in ("times", "count")]
    lines = [f"**{_text(gate.sentence)}**", ""]
    if shown:
        lines += [_line(HEAD), _line(["---"] * len(HEAD))]
        lines += [_line([_text(cell) for cell in row(each)]) for each in shown]
    held = len(gate.judged) - len(shown)
    lines += ["", f"{held} more metrics held." if held else ""]
    lines += [f"- {_text(each.key)}: {_text(each.reason)}" for each in shown if each.reason]
    lines += [f"- {_text(note)}" for note in gate.notes]
    return "\n".join(lines).strip() + "\n"


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str | None) -> str:
    """Text that is no markup: names come from folders and traces."""
    made = " ".join(str(text).split())
    for sign in "\\`*_{}[]<>|#":
        made = made.replace(sign, f"\\{sign}" if sign not in "<>" else f"&{'lg'[sign == '>']}t;")
    return made


def junit_xml(gate: "Gate") -> bytes:
    """A test case a metric; what cannot be told is skipped, with its reason."""
    cases = gate.judged
    suite = ElementTree.Element(
        "testsuite",
        name="workbench gate",
        tests=str(len(cases)),
        failures=str(len(gate.failed)),
        skipped=str(sum(each.verdict == "cannot_tell" for each in cases)),
        errors="0" if gate.measured else "1",
        time="0",
    )
    for each in cases:
        one = ElementTree.SubElement(
            suite, "testcase", classname=_xml(each.workload or "gate"), name=_xml(each.metric.name)
        )
        if each.verdict == "fail":
            said = ElementTree.SubElement(one, "failure", message=_xml(" · ".join(row(each))))
            said.text = _xml(each.reason or gate.sentence)
        elif each.verdict == "cannot_tell":
            ElementTree.SubElement(one, "skipped", message=_xml(each.reason or "cannot tell"))
    if not gate.measured:
        one = ElementTree.SubElement(suite, "testcase", classname="gate", name="measurement")
        ElementTree.SubElement(one, "error", message=_xml(gate.sentence))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    found: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return found


def _xml(text: str) -> str:
    """Without what XML cannot hold at all."""
    return "".join(
        c for c in text if c in "\t\n" or (ord(c) >= 32 and ord(c) not in (0xFFFE, 0xFFFF))
    )


def write_gate(gate: "Gate", folder: Path) -> Path:
    """All files, each whole or as it was before."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = (
        json.dumps(gate_document(gate), indent=1, allow_nan=False).encode(),
        summary_markdown(gate).encode(),
        junit_xml(gate),
        gate_page(gate).encode(),
    )
    for name, content in zip(FILES, contents, strict=True):
        write_whole(folder / name, content)
    return folder


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by new content, never leaving half of it."""
    waiting = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        waiting.write_bytes(content)
        waiting.replace(path)
    finally:
        waiting.unlink(missing_ok=True)


__all__ = ["FILES", "MARKS", "SCHEMA", "gate_document", "junit_xml", "summary_markdown"]
