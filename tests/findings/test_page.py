"""docs/findings.md is written from the rules, and every rule explains itself in four sections."""

import importlib.util
import sys
from pathlib import Path

from workbench.findings import RULES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_findings", DOCS / "make_findings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (DOCS / "findings.md").read_text(encoding="utf-8")
    assert written == module.page(), "run: python docs/make_findings.py"


def test_every_rule_has_the_four_sections() -> None:
    for rule in RULES:
        text = sys.modules[rule.__module__].__doc__ or ""
        for section in ("What: ", "Why: ", "What to do: ", "When it is wrong: "):
            assert section in text, f"{rule.__name__} lacks {section!r}"
