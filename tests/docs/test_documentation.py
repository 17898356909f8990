"""Documentation is complete: what exists has its line, and what is linked exists."""

import inspect
import re
import subprocess
from pathlib import Path

import pytest
import typer.main

import workbench as wb
from tests.house.files import ROOT, project_files
from workbench.cli import app
from workbench.findings import RULES
from workbench.run.run import Run
from workbench.settings import Record, Settings

REFERENCE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [Path(name) for name in project_files() if name.endswith(".md")]


@pytest.mark.parametrize("name", wb.__all__)
def test_every_public_name_has_its_line(name: str):
    assert re.search(rf"^\| `wb\.{name}\b", REFERENCE, re.MULTILINE)


def test_no_line_promises_a_name_that_does_not_exist():
    promised = set(re.findall(r"wb\.(\w+)", REFERENCE + README))

    assert promised <= set(wb.__all__)


def test_every_command_has_its_line_and_no_other_is_promised():
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    promised = set(re.findall(r"^\| `workbench (\w+)", REFERENCE, re.MULTILINE))

    assert promised == commands


def test_a_command_line_names_every_option_and_no_other():
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, options in re.findall(r"^\| `workbench (\w+)([^`]*)`", REFERENCE, re.MULTILINE):
        known = {option for one in commands[name].params for option in one.opts}
        known = {option for option in known if option.startswith("--")} - {"--help"}
        assert set(re.findall(r"--[\w-]+", options)) == known, name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__module__.rpartition(".")[2])
def test_every_finding_is_explained(rule: object):
    module = inspect.getmodule(rule)
    code = module.CODE  # type: ignore[union-attr]

    assert f"## {code}" in (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert f"({code})" in README


def test_every_data_set_has_a_card_and_a_line():
    from workbench import datasets

    cards = {path.stem for path in (ROOT / "datasets").glob("*.md")} - {"README"}
    listed = re.search(r"## Data sets.*?\n## ", REFERENCE, re.DOTALL)
    assert listed
    lines = set(re.findall(r"^\| `(\w+)`", listed[0], re.MULTILINE))

    assert cards == lines
    assert all(callable(getattr(datasets, name)) for name in cards)


def test_settings_and_answers_that_the_reference_names_exist():
    line = next(line for line in REFERENCE.splitlines() if "`wb.Run`" in line)
    for name in re.findall(r"`\.(\w+)", line):
        assert hasattr(Run, name), name
    for name in re.findall(r"(\w+)=", re.search(r"wb\.Settings\((.*?)\)", REFERENCE)[1]):  # type: ignore[index]
        assert name in Settings.__dataclass_fields__
    for name in re.findall(r"(\w+)=", re.search(r"wb\.Record\((.*?)\)", REFERENCE)[1]):  # type: ignore[index]
        assert name in Record.__dataclass_fields__


def test_every_answer_of_a_run_that_the_reference_names_exists_and_the_main_ones_have_an_example():
    named = set(re.findall(r"\brun\.([a-z]\w*)", REFERENCE))
    examples = "".join(re.findall(r"^```py\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL))

    assert [name for name in named if not hasattr(Run, name)] == []
    for name in ("critical_path", "what_if", "stalls", "loader", "system"):
        assert re.search(rf"^\| `run\.{name}`", REFERENCE, re.MULTILINE), name
        assert f"run.{name}." in examples, name


@pytest.mark.parametrize("document", PAGES, ids=str)
def test_every_linked_file_exists(document: Path):
    text = (ROOT / document).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (ROOT / document.parent / target).exists(), target


def test_the_makefile_has_at_most_eight_targets_and_help_lists_them():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    targets = phony[1].split()
    shown = subprocess.run(["make"], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert len(targets) <= 8
    assert re.findall(r"^  make (\w+)", shown, re.MULTILINE) == targets


def test_every_make_target_that_a_page_names_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (page, target)


def test_the_changelog_has_a_section_for_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.*)"$', project, re.MULTILINE)

    assert version
    assert re.search(rf"^## {re.escape(version[1])}", changelog, re.MULTILINE)


def test_decisions_are_numbered_without_gaps_by_name_and_by_title():
    notes = sorted((ROOT / "docs/decisions").glob("*.md"))
    titles = [note.read_text(encoding="utf-8").partition(".")[0] for note in notes]

    assert [note.name[:5] for note in notes] == [f"{n + 1:04}-" for n in range(len(notes))]
    assert titles == [f"# {n + 1}" for n in range(len(notes))]


def test_every_floor_has_its_line_in_the_map():
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    mapped = set(re.findall(r"`(\w+)`", contributing.partition("| floor")[2].partition("\n\n")[0]))
    rooms = {path.stem for path in (ROOT / "workbench").glob("*.py")}
    rooms |= {path.parent.name for path in (ROOT / "workbench").glob("*/__init__.py")}

    assert rooms - {"__init__", "__main__"} <= mapped


@pytest.mark.parametrize("document", PAGES, ids=str)
def test_every_table_renders(document: Path):
    """A block of rows is a table only with a header, a line of dashes and equally many cells."""
    text = (ROOT / document).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"(?:^(?!\s*$).*\n?)+", text, re.MULTILINE):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        if not rows:
            continue
        assert block.startswith("|"), f"a row stands in a paragraph: {rows[0]}"
        assert len(rows) > 2, rows[0]
        assert re.fullmatch(r"\|(\s*:?-+:?\s*\|)+\s*", rows[1]), f"no header: {rows[0]}"
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(cells) == 1, f"unequal rows after {rows[0]}"
