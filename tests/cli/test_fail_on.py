"""``workbench analyze --fail-on``: which severities few and many steps allow, and what it says."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.kineto import Kineto
from workbench.cli import app


def waiting(path: Path, steps: int) -> Path:
    """Steps of 100 us, of which the loop waits 60 us for a batch: critical if there are enough."""
    made = Kineto()
    for number in range(steps + 1):
        at = 1000 + 100 * number
        made.step(number, at, 100)
        made.loader(at, 60)
        made.op("aten::mm", at + 60, 40)
    return made.write(path)


def analyze(*arguments: object) -> Result:
    given = ["analyze", *map(str, arguments)]
    return CliRunner().invoke(app, given, catch_exceptions=False)


@pytest.mark.parametrize(
    ("steps", "severity", "exit_code"),
    [
        (30, "critical", 1),
        (30, "warning", 1),
        (5, "critical", 0),
        (5, "warning", 1),
        (0, "warning", 0),
        (0, "info", 1),
    ],
)
def test_few_steps_are_never_critical(
    tmp_path: Path, steps: int, severity: str, exit_code: int
) -> None:
    path = waiting(tmp_path / "t.json", steps)
    assert analyze(path, "--fail-on", severity).exit_code == exit_code


def test_that_few_steps_cannot_fail_it_is_said_and_only_then(tmp_path: Path) -> None:
    few, many = waiting(tmp_path / "few.json", 5), waiting(tmp_path / "many.json", 30)
    said = analyze(few, "--json", "--fail-on", "critical")
    assert "graded critical from 20 on: --fail-on warning judges fewer" in said.stderr
    assert said.stdout.count("\n") == 1, "standard output holds the document alone"
    assert not analyze(many, "--fail-on", "critical").stderr
    assert not analyze(few, "--fail-on", "warning").stderr


def test_what_cannot_be_read_outweighs_findings(tmp_path: Path) -> None:
    path = waiting(tmp_path / "t.json", 5)
    done = analyze(path, tmp_path / "gone.json", "--fail-on", "warning")
    assert done.exit_code == 2
    assert "does not exist" in done.stderr


def test_the_rule_of_severities_stands_in_the_help() -> None:
    told = " ".join(analyze("--help").stdout.replace("│", " ").split())
    assert "critical a large share of at least 20 steps" in told
