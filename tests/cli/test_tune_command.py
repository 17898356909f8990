"""``workbench tune``: a search from the command line, and its one clear error."""

import json
import sys
from pathlib import Path

import pytest

from workbench.cli import main

TRAIN = """
import torch
from torch.utils.data import TensorDataset
import workbench as wb

def workload():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    data = TensorDataset(torch.randn(256, 4), torch.randint(2, (256,)))
    return wb.Workload(
        model, data, loss=torch.nn.functional.cross_entropy,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1), batch_size=8, name="mine",
    )

def nothing():
    return 3

half = 0.5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which holds a module to train with."""
    (tmp_path / "train_mine.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "train_mine", raising=False)
    return tmp_path


def started(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of the command."""
    monkeypatch.setattr(sys, "argv", ["workbench", "tune", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.slow
def test_a_function_of_the_current_folder_is_tuned(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    asked = ("--only", "channels_last", "--budget", "15 s", "--folder", "tuning", "--json")
    assert started(monkeypatch, "train_mine:workload", *asked) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["title"]) == ("workbench.tuning/1", "mine")
    (refused, _) = document["trials"]  # True and False
    assert refused["outcome"] == "refused"
    assert "no 4-d weights" in refused["reason"]
    assert (folder / "tuning/tuning.json").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train_mine"], "write MODULE:FUNCTION"),
        (["absent_module:workload"], "cannot be loaded: No module named 'absent_module'"),
        (["train_mine:absent"], "cannot be loaded"),
        (["train_mine:nothing"], "gave a int"),
        (["train_mine:half"], "is a float, not a function"),
        (["train_mine:workload", "--budget", "soon"], "'5 min'"),
        (["train_mine:workload", "--only", "speed"], "is no setting"),
    ],
)
def test_what_makes_no_sense_is_one_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
):
    assert started(monkeypatch, *arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("workbench: ")
    assert said in line
