"""``%%workbench``: the cell runs inside a capture, and an error of the cell stays one."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from workbench.errors import RunError

LOOP = """
import torch
for batch in cap.watch([torch.ones(4)] * 12):
    (batch * 2).sum()
    cap.step()
done = True
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    hook = sys.displayhook
    made: Any = InteractiveShell.instance()
    made.history_manager.enabled = False
    made.run_line_magic("load_ext", "workbench")
    yield made
    made.run_line_magic("unload_ext", "workbench")
    made.history_manager.end_session()
    InteractiveShell.clear_instance()
    sys.displayhook = hook


def run(shell: Any, cell: str) -> Any:
    return shell.run_cell(f"%%workbench runs/mine\n{cell}")


def test_the_cell_runs_in_the_users_own_names_and_its_run_is_kept(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    result = run(shell, LOOP)

    assert result.success
    assert shell.user_ns["done"] is True
    assert shell.user_ns["cap"].run.steps is not None
    assert (tmp_path / "runs/mine/run.json").is_file()
    assert "A step of your loop takes" in capsys.readouterr().out


def test_a_failing_cell_still_fails(shell: Any, capsys: pytest.CaptureFixture[str]):
    result = run(shell, LOOP + "raise LookupError('of the cell')\n")

    assert not result.success
    assert isinstance(result.error_in_exec, LookupError)
    assert capsys.readouterr().out.count("Traceback (most recent call last)") == 1


def test_a_cell_that_cannot_be_parsed_fails(shell: Any):
    assert isinstance(run(shell, "for\n").error_in_exec, SyntaxError)


def test_a_cell_that_marks_no_step_is_told_how(shell: Any):
    error = run(shell, "x = 1\n").error_in_exec

    assert isinstance(error, RunError)
    assert "cap.step()" in "".join([str(error), *error.__notes__])
