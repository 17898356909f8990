"""The worker process: ``python -m workbench.reporting.execute`` in a folder with a job."""

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from workbench.reporting.worker import Job, Outcome

if TYPE_CHECKING:
    from nbformat import NotebookNode

KERNEL_START_LIMIT_S = 120
_CELL_LINE = 80


def main(folder: Path) -> None:
    """Execute the notebook in ``folder``, export it, and write what came of it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = msgspec.json.decode((folder / "job.json").read_bytes(), type=Job)
    problem = execute(job, folder)
    if problem is None:
        from workbench.reporting.export import export

        export(folder / "executed.ipynb", folder / "report.html", job)
    (folder / "outcome.json").write_bytes(msgspec.json.encode(Outcome(problem=problem)))


def execute(job: Job, folder: Path) -> str | None:
    """Run the notebook with papermill; what went wrong in one or two sentences, or ``None``."""
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

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
        )
    except PapermillExecutionError as error:
        return _failed_cell(error.source, f"{error.ename}: {error.evalue}")
    except DeadKernelError:
        return "the kernel that executes the report died; the machine may be out of memory."
    except RuntimeError as error:
        return f"the kernel for the report did not start ({error}): reinstall ipykernel."
    skipped = first_skipped(notebook)
    return None if skipped is None else _failed_cell(skipped, "it never ran, the kernel had ended")


def first_skipped(notebook: "NotebookNode") -> str | None:
    """Source of the first cell that was not executed: a kernel that exits early reports success."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    return next((cell.source for cell in code if cell.execution_count is None), None)


def _failed_cell(source: str, error: str) -> str:
    lines = [line for line in source.splitlines() if line.strip() and not line.startswith("#")]
    first = lines[0][:_CELL_LINE] if lines else ""
    return f"the report stopped in the cell `{first}` with {error.strip().rstrip('.')}."


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
