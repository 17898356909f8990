"""The kind of a report follows from what is given; each says what it is about, in every file."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tests.analysis.jobs import job_trace
from tests.pages.hostile import Page
from tests.reporting import sample
from tests.reporting.test_privacy import notebook
from workbench.cli import app
from workbench.errors import ReportError, TimeLimitError
from workbench.reporting import report
from workbench.reporting.kinds import KINDS, chosen_kind, notebook_of
from workbench.reporting.pdf import print_pdf
from workbench.run.source import open_run

slow = pytest.mark.slow
TRAIN = """
import torch
import workbench as wb

def workload():
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 2)
    data = torch.utils.data.TensorDataset(torch.ones(640, 8), torch.zeros(640, 2))
    loss = torch.nn.functional.mse_loss
    return wb.Workload(model, data, loss=loss, batch_size=8, name="little")
"""


def ranks(folder: Path) -> Path:
    """Three ranks that compute for 300, 400 and 500 µs: the third is the straggler."""
    folder.mkdir()
    for rank in range(3):
        job_trace(rank, [300, 400, 500]).write(folder / f"rank{rank}.json")
    return folder


def test_the_kind_follows_from_what_is_given(tmp_path: Path):
    one = sample.trace(tmp_path / "t.json")
    many = ranks(tmp_path / "job")
    run = sample.measured_run(tmp_path, "mine", step_ms=1)
    for source, kind in ((one, "profile"), (run, "profile"), (many, "ranks")):
        assert chosen_kind(None, source, base=False, workload=False) == kind
        assert chosen_kind(None, open_run(source), base=False, workload=False) == kind
    assert chosen_kind(None, many, base=True, workload=False) == "compare"
    assert chosen_kind("loader", one, base=False, workload=False) == "loader"


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_of_every_notebook_are_typed_and_documented(kind: Any):
    cells = json.loads(notebook_of(kind))["cells"]
    (tagged,) = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
    lines = "".join(tagged["source"]).splitlines()
    assert lines[0].startswith("# ")
    for line in lines[1:]:
        name, _, rest = line.partition(": ")
        assert name.isidentifier()
        assert " = " in rest
        assert "  # " in rest, f"{name} is not documented"
    assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"kind": "nothing"}, "profile, compare, ranks, loader"),
        ({"kind": "compare"}, "give the base, and then the head"),
        ({"kind": "ranks", "baseline": "t.json"}, "give base instead"),
        ({"workload": "train:workload"}, "one of them"),
        ({"run": None}, "one of them"),
        ({"run": None, "workload": "train"}, "MODULE:FUNCTION"),
        ({"run": None, "workload": "a:b", "kind": "ranks"}, "not ranks"),
        ({"cell_time_limit_s": 0}, "cell_time_limit_s=0 must be"),
    ],
)
def test_what_does_not_fit_together_is_said_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], match: str
):
    monkeypatch.chdir(tmp_path)
    sample.trace(tmp_path / "t.json")
    with pytest.raises(ReportError, match=match):
        report(**{"run": "t.json", **asked})
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


@slow
def test_two_runs_on_the_command_line_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    sample.measured_run(tmp_path, "before", step_ms=1.2)
    sample.measured_run(tmp_path, "after", step_ms=1.7)
    done = CliRunner().invoke(app, ["report", "before", "after", "-o", "r.html", "--files", "f"])
    assert done.exit_code == 0, done.output
    assert "cell 3 of 12" in done.stderr
    assert "▼ after is slower than before" in Page((tmp_path / "r.html").read_text()).words
    found = json.loads((tmp_path / "f" / "summary.json").read_text())
    assert found["schema"] == "workbench.compare/1"
    assert "▼ after is slower than before" in (tmp_path / "f" / "summary.md").read_text()
    suite = ElementTree.parse(tmp_path / "f" / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert (tmp_path / "f" / "report.ipynb").stat().st_size < 1_000_000


@slow
def test_ranks_are_told_by_who_waits_for_whom(tmp_path: Path):
    page = report(ranks(tmp_path / "job"), tmp_path / "r.html", files=tmp_path / "f")
    words = Page(page.read_text(encoding="utf-8")).words
    # 500 µs against 300 and 400: the others wait 200 and 100 µs, 150 on average.
    assert "Rank 2 is a straggler: the others wait 150 µs" in words
    assert "The ranks wait 150 µs of each step for rank 2" in words
    found = json.loads((tmp_path / "f" / "summary.json").read_text())
    assert len([each for each in found["ranks"] if each["rank"] is not None]) == 3


@slow
def test_a_workload_is_profiled_and_its_loader_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    page = report(
        out=tmp_path / "r.html",
        workload="train:workload",
        kind="loader",
        parameters={"steps": 8},
        files=tmp_path / "f",
    )
    words = Page(page.read_text(encoding="utf-8")).words
    assert "little" in words
    assert "The model can take" in words
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [
        "f",
        "r.html",
        "train.py",
    ]


@slow
def test_a_failing_cell_is_shown_whole_and_ends_with_1(tmp_path: Path):
    source = "values = [1, 2]\nfor each in values:\n    each / 0"
    own = notebook(tmp_path / "own.ipynb", [("print('before')", []), (source, [])])
    done = CliRunner().invoke(app, ["report", str(own), "-o", str(tmp_path / "r.html")])
    assert done.exit_code == 1
    for line in source.splitlines():
        assert line in done.stderr
    assert "ZeroDivisionError" in done.stderr
    kept = json.loads((tmp_path / "r.failed.ipynb").read_text())
    assert "before" in str([cell.get("outputs") for cell in kept["cells"]])
    assert not (tmp_path / "r.html").exists()


@slow
def test_a_cell_that_takes_too_long_is_ended_and_named(tmp_path: Path):
    cells: list[tuple[str, list[str]]] = [("x = 1", []), ("import time\ntime.sleep(60)", [])]
    own = notebook(tmp_path / "own.ipynb", cells)
    with pytest.raises((ReportError, TimeLimitError), match=r"time limit of 2 s.*failed\.ipynb"):
        report(own, tmp_path / "r.html", cell_time_limit_s=2)
    assert (tmp_path / "r.failed.ipynb").is_file()


@slow
def test_a_notebook_of_ones_own_gets_its_parameters_and_its_folder(tmp_path: Path):
    (tmp_path / "data.txt").write_text("beside the notebook")
    cells = [("word = ''\nmany = 0", ["parameters"])]
    cells += [("print(word, many + 1, open('data.txt').read())", [])]
    own = notebook(tmp_path / "own.ipynb", cells)
    command = ["report", str(own), "-o", str(tmp_path / "r.html"), "-p", "word=hi", "-p", "many=2"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "hi 3 beside the notebook" in Page((tmp_path / "r.html").read_text()).words


def test_a_pdf_without_a_browser_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_CHROMIUM", raising=False)
    monkeypatch.setattr("workbench.reporting.pdf.NAMES", ("chromium",))
    source = sample.trace(tmp_path / "t.json")
    with pytest.raises(ReportError, match="apt-get install chromium"):
        report(source, tmp_path / "r.html", pdf=tmp_path / "r.pdf")
    with pytest.raises(ReportError, match="apt-get install chromium"):
        print_pdf(tmp_path / "r.html", tmp_path / "r.pdf")
