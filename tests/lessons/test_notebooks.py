"""Every lesson runs: its solution passes its checks, and its exercise fails them until solved."""

import json
from pathlib import Path

import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from tests.house.files import ROOT
from tests.lessons.sources import LESSONS, make_lessons

SOLUTIONS = sorted((LESSONS / "solutions").glob("*.ipynb"))
EVERY_RUN = ("01", "02", "03", "07", "10")
"""Lessons of each kind (one process, loaders, a trace, ranks, a gate); the soak runs them all."""
SOLVED, EXERCISES = (
    [
        pytest.param(path, marks=[] if path.stem[:2] in here else pytest.mark.soak)
        for path in SOLUTIONS
    ]
    for here in (EVERY_RUN, EVERY_RUN[:1])
)
TRIES = 3
"""What other work on the machine can spoil is a measurement, and not each time."""


def test_notebooks_are_those_of_their_sources() -> None:
    made = make_lessons.written()
    kept = {*LESSONS.glob("*.ipynb"), *SOLUTIONS}
    assert set(made) == kept, "run: python docs/make_lessons.py"
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: python docs/make_lessons.py"


def test_a_slot_is_filled_in_the_solution_and_open_in_the_exercise() -> None:
    source = "# Title\n\n```python\nif True:\n    a = 1  # exercise: a = ...\n```\nEnd.\n"
    solved, open_ = (
        ["".join(cell["source"]) for cell in make_lessons.notebook(source, solved=way)["cells"]]
        for way in (True, False)
    )
    assert solved == ["# Title", "if True:\n    a = 1", "End."]
    assert open_ == ["# Title", "if True:\n    a = ...", "End."]


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_lesson_has_its_fixed_shape(path: Path) -> None:
    """Same sections in the same order, and something to fill in."""
    source = (ROOT / "docs/lessons" / f"{path.stem}.md").read_text(encoding="utf-8")
    assert "# exercise: " in source
    if path.stem.startswith("11"):
        return
    wanted = (
        "**The question.**",
        "**The tool.**",
        "## Guess first",
        "## Check",
        "## Further reading",
    )
    places = [source.index(part) for part in wanted]
    assert places == sorted(places)
    assert "GPU" in source
    assert "figure(" in source or "timeline(" in source


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_the_solution_passes(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    for left in reversed(range(TRIES)):
        try:
            done = papermill.execute_notebook(
                str(path),
                str(tmp_path / "done.ipynb"),
                cwd=str(tmp_path),
                progress_bar=False,
                kernel_name="python3",
                execution_timeout=240,
            )
        except PapermillExecutionError:
            if not left:
                raise
        else:
            assert "✓" in json.dumps(done, ensure_ascii=False)
            return


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_the_exercise_fails_its_check_until_it_is_solved(path: Path, tmp_path: Path) -> None:
    """Run as it is handed out, errors and all: what the learner has to answer is not passed."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(LESSONS / path.name, as_version=4)
    client = NotebookClient(
        notebook,
        allow_errors=True,
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    heading, failed = "", []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = cell.source
        elif "grade." in cell.source:
            errors = [out.ename for out in cell.outputs if out.output_type == "error"]
            if "grade.key(" in cell.source or "## Check" in heading:
                failed.append(errors)
    assert failed
    assert all(errors == ["LessonError"] for errors in failed), failed
