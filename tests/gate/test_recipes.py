"""The recipes for CI: their shell parts run, in a repository of two commits."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gate.test_both import commit, git, repository

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"

assert repository


def recipe(name: str) -> Any:
    return yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))


def scripts(name: str) -> tuple[str, str, str]:
    """What is installed, what judges, and what shows it."""
    if name == "github.yml":
        parts = [each["run"] for each in recipe(name)["jobs"]["gate"]["steps"] if "run" in each]
        return parts[0], parts[1], parts[2]
    job = recipe(name)["performance"]
    return tuple("\n".join(job[p]) for p in ("before_script", "script", "after_script"))  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_a_recipe_fails_a_slower_head_and_shows_why(
    repository: Path,
    tmp_path: Path,
    name: str,
):
    """From 20 ms of sleep to 200; the command on the path asks for few and short blocks."""
    (repository / "delay.py").write_text("SECONDS = 0.2\n")
    commit("slower", "slower")
    base = git("rev-parse", "fast").strip()
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "workbench"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m workbench "$@" --steps 3 --blocks 5\n')
    command.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BASE": base,
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    install, judge, show = scripts(name)
    assert "torch-workbench[torch]" in install
    done = [
        subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=repository,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        for script in (judge, show)
    ]
    assert done[0].returncode in (0, 1), done[0].stderr
    assert done[1].returncode == 0, done[1].stderr
    shown = tmp_path / "summary"
    told = shown.read_text(encoding="utf-8") if shown.is_file() else done[1].stdout
    assert "step time" in told
    failed = "✗ fail" in done[0].stdout
    assert done[0].returncode == int(failed)
    assert (repository / "gate" / "junit.xml").is_file()


def test_the_jobs_have_a_time_limit_and_the_whole_history():
    job = recipe("github.yml")["jobs"]["gate"]
    assert job["timeout-minutes"] <= 60
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    assert recipe("gitlab.yml")["performance"]["variables"]["GIT_DEPTH"] == "0"
