"""``workbench analyze`` with steps that nothing marks, and ranks that several processes read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.kineto import Kineto
from workbench.cli import app
from workbench.trace import cache


def loop(path: Path, steps: int = 5) -> Path:
    """A loop without ``ProfilerStep``: an operator and the optimizer, every 100 us."""
    made = Kineto()
    for at in range(0, 100 * steps, 100):
        made.op("aten::mm", at, 50)
        made.range("Optimizer.step#SGD.step", at + 60, 20)
    return made.write(path)


def documents(*arguments: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(app, ["analyze", "--json", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_steps_are_inferred_only_when_asked(tmp_path: Path) -> None:
    path = str(loop(tmp_path / "t.json"))
    (plain,), (asked,) = documents(path), documents(path, "--infer-steps")
    assert plain["ranks"][0]["steps"] is None  # type: ignore[index]
    steps = asked["ranks"][0]["steps"]  # type: ignore[index]
    assert (steps["source"], steps["count"], steps["time_us"]["median"]) == ("inferred", 4, 100.0)


@pytest.mark.slow
def test_ranks_read_by_processes_give_the_same_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "caches"))
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        loop(folder / f"rank{rank}.json", steps=2000)
    assert documents(str(folder)) == documents(str(folder), "--workers", "2")


def test_no_worker_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["analyze", str(tmp_path), "--workers", "0"])
    assert done.exit_code == 2
