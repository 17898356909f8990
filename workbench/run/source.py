"""``wb.open`` and ``wb.runs``: from a path to a Run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, TraceError
from workbench.run.rank import Watch, rank_of, unwatched
from workbench.run.run import Run

if TYPE_CHECKING:
    from workbench.store.record import RunRecord
    from workbench.trace.ranks import RankFiles


def open_run(path: str | Path, *, watch: Callable[[Path], Watch] = unwatched) -> Run:
    """Open a Run folder, a trace file from anywhere, or a folder with one trace per rank.

    A trace is read at once, so that a file that cannot be read fails here and not later.
    ``watch`` is for a progress bar: it is entered for every trace while that is read.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise TraceError(
            f"{path} does not exist: give a trace (.json, .json.gz), a Run folder, "
            "or a folder with one trace per rank."
        )
    if path.is_dir():
        if (path / "run.json").is_file():
            return load(path, watch=watch)
        return _folder_of_ranks(path, watch)
    analysis = rank_of(path, watch=watch)
    _ = analysis.trace
    return Run(name=path.name, ranks=[analysis], traces=[path])


def open_runs(
    paths: Sequence[Path], *, watch: Callable[[Path], Watch] = unwatched
) -> Iterator[tuple[Path, Callable[[], Run]]]:
    """For each Run among the paths, its first path and what opens it.

    Traces that are the ranks of one job are one Run; every other path is one by itself.
    """
    from workbench.trace.ranks import ranks_of_one_job

    job = ranks_of_one_job(paths)
    if job is not None:
        yield paths[0], partial(_job, job, paths[0].absolute().parent.name, watch)
        return
    for path in paths:
        yield path, partial(open_run, path, watch=watch)


def load(folder: str | Path, *, watch: Callable[[Path], Watch] = unwatched) -> Run:
    """The Run that a folder holds."""
    from workbench.store.folder import read_record

    folder = Path(folder)
    record = read_record(folder)
    traces = [folder / name for name in record.traces]
    missing = [trace.name for trace in traces if not trace.is_file()]
    if missing:
        raise RunError(
            f"{folder} is not whole: {', '.join(missing)} named in run.json is gone. "
            "Put the file back, or record again."
        )
    if not traces:
        raise RunError(f"{folder} names no trace in its run.json: record again.")
    return Run(
        name=record.name,
        ranks=[
            rank_of(trace, alone=len(traces) == 1, on_cpu=_on_cpu(record), watch=watch)
            for trace in traces
        ],
        record=record,
        folder=folder,
        traces=traces,
    )


def _folder_of_ranks(folder: Path, watch: Callable[[Path], Watch]) -> Run:
    from workbench.trace import find_ranks

    return _job(find_ranks(folder), folder.resolve().name, watch)


def _job(files: RankFiles, name: str, watch: Callable[[Path], Watch]) -> Run:
    """One Run over the traces of a job, with what is wrong with them together."""
    told = files.violations
    return Run(
        name=name,
        ranks=[rank_of(file.path, rank=file.rank, job=told, watch=watch) for file in files],
        traces=[file.path for file in files],
        notes=[violation.message for violation in told],
    )


def _on_cpu(record: RunRecord) -> bool:
    return str(record.effective.get("device") or "").partition(":")[0] == "cpu"


class Runs:
    """The Runs in one folder: list, load by name or number, delete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """Folder names, oldest first."""
        from workbench.store.folder import list_runs

        return [entry.folder.name for entry in list_runs(self.folder)]

    def __getitem__(self, which: str | int) -> Run:
        names = self.names()
        if isinstance(which, int):
            try:
                which = names[which]
            except IndexError:
                raise RunError(
                    f"no Run number {which}: {self.folder} holds {len(names)}."
                ) from None
        if which not in names:
            known = ", ".join(names) or "none"
            raise RunError(f"no Run named {which!r} in {self.folder}; there: {known}.")
        return load(self.folder / which)

    def __len__(self) -> int:
        return len(self.names())

    def __iter__(self) -> Iterator[Run]:
        return (load(self.folder / name) for name in self.names())

    def delete(self, name: str) -> None:
        """Delete one Run's folder."""
        self[name].delete()

    def __repr__(self) -> str:
        from workbench.pages.runs import runs_text
        from workbench.store.folder import list_runs

        return runs_text(list_runs(self.folder), where=str(self.folder))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.runs import runs_html
        from workbench.store.folder import list_runs

        page = runs_html(list_runs(self.folder), where=str(self.folder))
        return {"text/html": page, "text/plain": repr(self)}


def runs(folder: str | Path = "runs") -> Runs:
    """The Runs on disk below ``folder``, oldest first."""
    from workbench.store.names import as_folder

    return Runs(as_folder(folder, "runs"))
