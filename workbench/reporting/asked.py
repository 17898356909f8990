"""What a report is asked to be about: checked, and put into the words of its notebook."""

import os
from pathlib import Path
from typing import Any

from workbench.errors import ReportError, RunError
from workbench.reporting.kinds import NOTEBOOK as NOTEBOOK_ENDING
from workbench.reporting.kinds import chosen_kind, notebook_of
from workbench.run.run import Run


class Asked:
    """What a report is about: which notebook, and what it is given."""

    def __init__(
        self,
        run: Run | str | Path | None,
        kind: str | None,
        *,
        base: Run | str | Path | None,
        baseline: Run | str | Path | None,
        other: Run | str | Path | None,
        workload: str | None,
    ) -> None:
        self.own = None
        if isinstance(run, str | os.PathLike) and str(run).endswith(NOTEBOOK_ENDING):
            self.own = path_of(run)
            if any(each is not None for each in (kind, base, baseline, other, workload)):
                raise ReportError("a notebook of your own takes parameters only (-p NAME=VALUE).")
            self.title = self.own.stem
            return
        self._run = None if run is None else path_of(run)
        if (run is None) == (workload is None):
            raise ReportError("give a Run or trace, or a workload (MODULE:FUNCTION): one of them.")
        if workload is not None and not all(workload.partition(":")):
            raise ReportError(f"workload={workload!r} names no function: write MODULE:FUNCTION.")
        about = run if isinstance(run, Run) else self._run or Path()
        self.kind = chosen_kind(kind, about, base=base is not None, workload=workload is not None)
        self._base, self._workload = base, workload
        self._beside = {"baseline_path": baseline, "other_path": other}
        self._refuse()
        name = run.name if isinstance(run, Run) else self._run.name if self._run else workload
        word = {"profile": "Profile", "compare": "Comparison", "ranks": "Ranks", "loader": "Input"}
        self.title = f"{word[self.kind]} of {name}"

    def _refuse(self) -> None:
        beside = any(each is not None for each in self._beside.values())
        if beside and self.kind != "profile":
            raise ReportError(
                f"baseline and other belong to kind=profile, not to {self.kind}: give base instead."
            )
        if self._base is not None and self.kind != "compare":
            raise ReportError(f"a base belongs to kind=compare, not to {self.kind}.")
        if self._workload is not None and self.kind not in ("profile", "loader"):
            raise ReportError(f"a workload gives a profile or its loader, not {self.kind}.")

    def parameters(self) -> dict[str, Any]:
        """What the notebook is told."""
        if self.own is not None:
            return {}
        path = None if self._run is None else str(self._run)
        if self.kind == "compare":
            assert self._base is not None
            return {"base_path": str(path_of(self._base)), "head_path": path}
        if self.kind == "ranks":
            return {"run_path": path}
        told = {"run_path": path, "workload": self._workload}
        if self.kind == "loader":
            return told
        beside = self._beside.items()
        return told | {n: None if each is None else str(path_of(each)) for n, each in beside}

    def notebook(self) -> bytes:
        """The notebook that is executed."""
        return notebook_of(self.kind) if self.own is None else self.own.read_bytes()


def path_of(run: Run | str | Path) -> Path:
    """Where the kernel that makes the report finds a Run."""
    if not isinstance(run, Run):
        if not isinstance(run, str | os.PathLike):
            raise RunError(f"{run!r} is neither a Run nor a path: give one of these.")
        path = Path(run).expanduser().absolute()
        if not path.exists():
            raise RunError(
                f"{path} does not exist: give a trace (.json, .json.gz), a Run folder, "
                "or a folder with one trace per rank."
            )
        return path
    if run.place is not None:
        return run.place.absolute()
    if not run.traces:
        raise RunError(f"{run.name!r} is not on disk: open its trace from a file.")
    first = run.traces[0]
    return first if len(run.traces) == 1 else first.parent
