"""The worker: what counts as executed, and what leaves this machine."""

from pathlib import Path

import nbformat
import pytest

from workbench.errors import ReportError
from workbench.reporting.execute import failed_line, first_line, first_skipped
from workbench.reporting.export import render, without_local_traces
from workbench.reporting.worker import Job, run_worker, running_cell

new_code, new_output = nbformat.v4.new_code_cell, nbformat.v4.new_output


def _notebook(*cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=list(cells))


def test_a_cell_that_never_ran_is_found():
    nb = _notebook(
        new_code("import sys; sys.exit(0)", execution_count=1), new_code(""), new_code("verdict()")
    )
    assert first_skipped(nb) == (3, "verdict()")


def test_a_notebook_that_ran_to_its_end_has_none():
    nb = _notebook(new_code("1", execution_count=1), nbformat.v4.new_markdown_cell("words"))
    assert first_skipped(nb) is None


def test_injected_paths_and_warnings_stay_out_of_the_page():
    injected = new_code(
        "run_path = '/somewhere/secret'", metadata={"tags": ["injected-parameters"]}
    )
    warned = new_code(
        "1", outputs=[new_output("stream", name="stderr", text="/somewhere/lib.py:1")]
    )
    nb = without_local_traces(_notebook(injected, warned))
    job = Job(parameters={}, title="t", heading=None, footer="f")
    assert "/somewhere" not in render(nb, job)


def test_html_is_shown_as_it_is_and_everything_else_as_text():
    html = new_output("display_data", data={"text/html": "<b id='x'>1</b>", "text/plain": "PLAIN"})
    plain = new_output("execute_result", data={"text/plain": "<i>2</i>"})
    printed = new_output("stream", name="stdout", text="<i>3</i>")
    nb = _notebook(new_code("'<i>4</i>'", outputs=[html, plain, printed]))
    page = render(nb, Job(parameters={}, title="<i>5</i>", heading="<i>6</i>", footer="<i>7</i>"))
    assert "<b id='x'>1</b>" in page
    assert "PLAIN" not in page
    for number in range(2, 8):
        assert f"&lt;i&gt;{number}&lt;/i&gt;" in page


@pytest.mark.parametrize(
    ("statuses", "where"),
    [(["completed", "running"], "in cell 2"), (["completed", "pending"], "between two cells")],
)
def test_where_it_stood_is_read_from_the_saved_notebook(
    tmp_path: Path, statuses: list[str], where: str
):
    cells = [new_code("1", metadata={"papermill": {"status": status}}) for status in statuses]
    nbformat.write(_notebook(*cells), tmp_path / "executed.ipynb")
    assert running_cell(tmp_path) == where


def test_before_anything_was_saved_it_stood_before_its_first_cell(tmp_path: Path):
    assert running_cell(tmp_path) == "before its first cell"


def test_the_line_that_failed_is_the_cells_own():
    traceback = [
        "\x1b[31m-------\x1b[39m",
        "TraceError        Traceback (most recent call last)",
        "Cell \x1b[32mIn[3]\x1b[39m, line 3\n      1 import workbench as wb\n"
        "\x1b[32m----> \x1b[39m\x1b[32m3\x1b[39m run = wb.open(run_path)\n",
        "File source.py:28, in open_run(path)\n---> 28 _ = analysis.trace",
    ]
    assert failed_line(traceback) == "run = wb.open(run_path)"


def test_without_a_traceback_the_first_line_stands_for_the_cell():
    assert failed_line([]) is None
    assert first_line("\n# why\n  run.part('verdict')\nmore") == "run.part('verdict')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "the kernel .* died"),
        ("import sys\nsys.exit(0)", r"cell 2 at `2` with the kernel gone: it never ran"),
        ("import sys\nsys.exit(3)", "cell 1 at `import sys` with SystemExit: 3"),
        ("1/0", r"cell 1 at `1/0` with ZeroDivisionError"),
    ],
)
def test_a_notebook_that_did_not_come_through_is_never_a_success(
    tmp_path: Path, source: str, problem: str
):
    nbformat.write(_notebook(new_code(source), new_code("2")), tmp_path / "report.ipynb")
    job = Job(parameters={}, title="t", heading=None, footer="f")
    with pytest.raises(ReportError, match=problem):
        run_worker(job, tmp_path, time_limit_s=60)
    assert not (tmp_path / "report.html").exists()
