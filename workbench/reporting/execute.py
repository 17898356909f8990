"""The worker process: ``python -m workbench.reporting.execute`` in a folder with a job."""

import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from workbench.reporting.privacy import Guard, secrets_in
from workbench.reporting.worker import Job, Outcome, running_cell

if TYPE_CHECKING:
    from nbformat import NotebookNode

KERNEL_START_LIMIT_S = 120
LINE_WIDTH = 80

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_POINTED = re.compile(r"^-+> \d+ (.*)$", re.MULTILINE)


def main(folder: Path) -> None:
    """Execute the notebook in ``folder``, export it, and write what came of it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = msgspec.json.decode((folder / "job.json").read_bytes(), type=Job)
    found = execute(job, folder)
    from workbench.reporting.export import export, guard_notebook

    guard = guard_of(job)
    guard_notebook(folder / "executed.ipynb", guard)
    if found.problem is None:
        export(folder / "executed.ipynb", folder / "report.html", job)
    told = Outcome(
        problem=None if found.problem is None else guard(found.problem),
        shown=None if found.shown is None else guard(found.shown),
    )
    (folder / "outcome.json").write_bytes(msgspec.json.encode(told))


def guard_of(job: Job) -> Guard:
    """What keeps secrets, also those given as parameters, and places out of all that is shown."""
    return Guard(secrets=secrets_in(job.parameters), paths=job.private)


def execute(job: Job, folder: Path) -> Outcome:
    """Run the notebook with papermill; what went wrong in one or two sentences, or nothing."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    limit = job.cell_time_limit_s
    try:
        notebook = papermill.execute_notebook(
            folder / "report.ipynb",
            folder / "executed.ipynb",
            parameters=job.parameters,
            kernel_name="python3",
            kernel_manager_class=_manager_class(),
            language="python",
            progress_bar=False,
            start_timeout=KERNEL_START_LIMIT_S,
            execution_timeout=None if limit is None else max(1, round(limit)),
            cwd=job.where,
        )
    except PapermillExecutionError as error:
        line = failed_line(error.traceback) or first_line(error.source)
        problem = _failed_cell(error.exec_count, line, f"{error.ename}: {error.evalue}")
        return Outcome(problem=problem, shown=whole(error.source, error.traceback))
    except CellTimeoutError:
        said = f"its time limit of {limit:g} s reached: give a larger cell_time_limit_s."
        at = running_cell(folder)
        return Outcome(problem=f"the report stopped {at}, {said}", shown=said)
    except DeadKernelError:
        said = "the kernel that executes the report died; the machine may be out of memory."
        return Outcome(problem=said)
    except RuntimeError as error:
        said = f"the kernel for the report did not start ({error}): reinstall ipykernel."
        return Outcome(problem=said)
    skipped = first_skipped(notebook)
    if skipped is None:
        return Outcome()
    said = _failed_cell(skipped[0], first_line(skipped[1]), "the kernel gone: it never ran")
    return Outcome(problem=said)


def whole(source: str, traceback: Sequence[str]) -> str:
    """A cell and its traceback as text."""
    told = _COLOUR.sub("", "\n".join(traceback))
    lines = "\n".join(f"    {line}" for line in source.rstrip().splitlines())
    return f"{lines}\n\n{told}"


def first_skipped(notebook: "NotebookNode") -> tuple[int, str] | None:
    """Number and source of the first code cell that did not run.

    A kernel that exits early, by ``sys.exit(0)``, looks like success to papermill.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        if cell.source.strip() and cell.execution_count is None:
            return number, cell.source
    return None


def failed_line(traceback: Sequence[str]) -> str | None:
    """The line of the cell itself that IPython's traceback points at."""
    text = _COLOUR.sub("", "\n".join(traceback))
    pointed = _POINTED.search(text)
    return pointed[1].strip() if pointed else None


def first_line(source: str) -> str:
    """The first line of a cell that says something."""
    lines = (line.strip() for line in source.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def _failed_cell(number: int | None, line: str, error: str) -> str:
    said = error.strip().rstrip(".")
    return f"the report stopped in cell {number} at `{line[:LINE_WIDTH]}` with {said}."


def _manager_class() -> Any:
    """A kernel manager for this very Python, whatever kernels are or are not installed."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    class ThisPython(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=launch, display_name="Python 3", language="python")

    return ThisPython


def _end_with_parent() -> None:
    """Leave when the caller is gone: its end of our input closes. The kernel follows by itself."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main(Path.cwd())
