"""Writes docs/findings.md from the rules' own docstrings; run it as a script."""

import sys
from pathlib import Path
from types import ModuleType

from workbench.findings import RULES, RULES_OF_TWO

PAGE = Path(__file__).parent / "findings.md"

HEAD = """# Findings

Each finding has a stable code, its evidence, an upper bound of what acting on it could gain, and a
case in which it is wrong. This page is written from the rules themselves (`workbench/findings/`).
"""


def page() -> str:
    """The page as it should be."""
    parts = [HEAD]
    modules = {rule.__module__ for rule in (*RULES, *RULES_OF_TWO)}
    for module in sorted((sys.modules[name] for name in modules), key=_code):
        title, _, body = (module.__doc__ or "").strip().partition("\n\n")
        code, _, summary = title.partition(": ")
        parts.append(f"## {code} — {summary.rstrip('.')}\n\n{_sections(body)}\n")
    return "\n".join(parts)


def _code(module: ModuleType) -> str:
    return str(module.CODE)


def _sections(body: str) -> str:
    paragraphs: list[str] = []
    for line in body.splitlines():
        head, colon, rest = line.partition(": ")
        if colon and head in {"What", "Why", "What to do", "When it is wrong"}:
            paragraphs.append(f"**{head}.** {_sentence(rest)}")
        elif paragraphs:
            paragraphs[-1] += f" {line.strip()}"
    return "\n\n".join(paragraphs)


def _sentence(text: str) -> str:
    """The text with a capital, unless it begins with a name of a program."""
    first = text.partition(" ")[0]
    return text if set(first) & set("._(`") else text[:1].upper() + text[1:]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
