"""``wb.open`` and ``wb.runs``: from a path to a Run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, TraceError
from workbench.run.joining import join, rank_folders
from workbench.run.reading import Watch, rank_of, ranks_of, unwatched
from workbench.run.run import Run
from workbench.units import name_text

if TYPE_CHECKING:
    from workbench.store.record import RunRecord
    from workbench.trace.ranks import RankFiles


def open_run(
    path: str | Path,
    *,
    workers: int | None = None,
    infer_steps: bool = False,
    watch: Callable[[Path], Watch] = unwatched,
) -> Run:
    """Open a Run folder, a trace file from anywhere, or a folder with one trace per rank.

    A trace is read at once, so that a file that cannot be read fails here and not later; the ranks
    of a folder are read one after the other when they are needed.

    Args:
        path: A Run folder, a trace, or a folder of traces.
        workers: Read the ranks of a folder now, with so many processes.
        infer_steps: Where no step is marked, take what repeats (the optimizer's step, else waits
            for batches) as steps; their source is ``inferred``.
        watch: For a progress bar: entered for every trace while that is read.
    """
    run = _open(path, workers=workers, watch=watch)
    for rank in run.ranks:
        rank.infer_steps = infer_steps
    return run


def _open(path: str | Path, *, workers: int | None, watch: Callable[[Path], Watch]) -> Run:
    path = _path(path)
    if not _exists(path):
        raise TraceError(
            f"{path} does not exist: give a trace (.json, .json.gz), a Run folder, "
            "or a folder with one trace per rank."
        )
    if path.is_dir():
        if _is_ours(path):
            run = load(path, watch=watch)
            run.notes = (*_recorded_later(path), *run.notes)
        elif folders := rank_folders(path):
            run = join(path, folders, watch=watch)
            run.notes = (*_recorded_later(path), *run.notes)
        else:
            run = _folder_of_ranks(path, watch)
        if workers is not None:
            from workbench.trace import read_into_caches

            read_into_caches(run.traces, workers=workers)
        return run
    from workbench.run.memory import is_snapshot, rank_of_snapshot

    if is_snapshot(path):
        return Run(name=name_text(path), ranks=[rank_of_snapshot(path)], traces=[path])
    return Run(name=name_text(path), ranks=ranks_of(path, watch=watch), traces=[path])


def _path(given: object) -> Path:
    if not isinstance(given, (str, os.PathLike)):
        raise TraceError(
            f"wb.open takes the path of a trace or folder, not {type(given).__name__}; "
            "workbench.trace.read takes bytes and open files too."
        )
    return Path(given).expanduser()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a name that is too long, or a folder that may not be entered
        shown = str(path) if len(str(path)) < 200 else str(path)[:60] + "…"
        raise TraceError(f"Cannot open {shown}: {error.strerror}.") from None


def _is_ours(folder: Path) -> bool:
    return (folder / "run.json").is_file()


def _recorded_later(folder: Path) -> tuple[str, ...]:
    """Says that a recording of the same name lies beside it, for whoever means the newest.

    A capture never writes over a Run: its second one of the name ``mine`` is ``mine-2``.
    """
    number, newest = 2, None
    while (beside := folder.parent / f"{folder.name}-{number}").is_dir():
        if _is_ours(beside) or rank_folders(beside):
            newest = beside
        number += 1
    if newest is None:
        return ()
    return (
        f"this is the first recording named {name_text(folder)!r}; the newest one lies in {newest}",
    )


def open_runs(
    paths: Sequence[Path],
    *,
    workers: int | None = None,
    infer_steps: bool = False,
    watch: Callable[[Path], Watch] = unwatched,
) -> Iterator[tuple[Path, Callable[[], Run]]]:
    """For each Run among the paths, its first path and what opens it.

    Traces that are the ranks of one job are one Run; every other path is one by itself, but a
    folder that holds several jobs is one Run for each.
    """
    from workbench.trace import read_into_caches
    from workbench.trace.ranks import ranks_of_one_job

    job = ranks_of_one_job(paths)
    if job is not None:
        if workers is not None:
            read_into_caches(paths, workers=workers)
        name = name_text(paths[0].absolute().parent)
        yield paths[0], partial(_job, job, name, watch, infer_steps=infer_steps)
        return
    for path in paths:
        jobs = _jobs(path)
        if len(jobs) < 2:
            opened = partial(open_run, path, workers=workers, infer_steps=infer_steps, watch=watch)
            yield path, opened
            continue
        if workers is not None:
            read_into_caches([file.path for job in jobs for file in job], workers=workers)
        for number, job in enumerate(jobs, start=1):
            name = f"{name_text(path.absolute())}, job {number} of {len(jobs)}"
            yield job[0].path, partial(_job, job, name, watch, infer_steps=infer_steps)


def _jobs(path: Path) -> list[RankFiles]:
    """The jobs of a folder of traces from elsewhere; none where it is something else."""
    from workbench.trace import find_ranks

    try:
        if not path.is_dir() or _is_ours(path) or rank_folders(path):
            return []
        return find_ranks(path).jobs
    except (OSError, TraceError):  # said where it is opened
        return []


def load(
    folder: str | Path,
    *,
    base: Path | None = None,
    watch: Callable[[Path], Watch] = unwatched,
) -> Run:
    """The Run that a folder holds; a relative one lies below ``base``, the current folder."""
    from workbench.store.folder import read_record

    folder = Path(folder)
    place = (base or Path.cwd()) / folder
    record = read_record(place)
    traces = [place / name for name in record.traces]
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
        place=place,
        traces=traces,
    )


def _folder_of_ranks(folder: Path, watch: Callable[[Path], Watch]) -> Run:
    from workbench.trace import find_ranks

    return _job(find_ranks(folder), name_text(folder.resolve()), watch)


def _job(
    files: RankFiles, name: str, watch: Callable[[Path], Watch], *, infer_steps: bool = False
) -> Run:
    """One Run over the traces of a job, with what is wrong with them together."""
    told = files.violations
    several = len(files) > 1
    ranks = [
        rank_of(file.path, rank=file.rank, job=told, several=several, watch=watch) for file in files
    ]
    for rank in ranks:
        rank.infer_steps = infer_steps
    return Run(
        name=name,
        ranks=ranks,
        traces=[file.path for file in files],
        notes=[violation.message for violation in told],
    )


def _on_cpu(record: RunRecord) -> bool:
    return str(record.effective.get("device") or "").partition(":")[0] == "cpu"


_NAMED = 10
"""So many names in a message; the newest ones."""


class Runs:
    """The Runs in one folder: list, load by name or number, delete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._base = Path.cwd()
        self._place = self._base / folder

    def names(self) -> list[str]:
        """Folder names, oldest first."""
        from workbench.store.folder import list_runs

        return [entry.folder.name for entry in list_runs(self._place)]

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
            known = ", ".join(names[-_NAMED:]) or "none"
            if len(names) > _NAMED:
                known = f"{len(names) - _NAMED} older ones, {known}"
            raise RunError(f"no Run named {which!r} in {self.folder}; there: {known}.")
        return load(self.folder / which, base=self._base)

    def __len__(self) -> int:
        return len(self.names())

    def __iter__(self) -> Iterator[Run]:
        return (load(self.folder / name, base=self._base) for name in self.names())

    def delete(self, name: str) -> None:
        """Delete one Run's folder, also one whose trace is gone."""
        from workbench.store.folder import delete_run

        if not isinstance(name, str) or name in ("", "..") or Path(name).name != name:
            raise RunError(f"{name!r} is not the name of a Run: wb.runs() lists those there are.")
        delete_run(self._place / name)

    def __repr__(self) -> str:
        from workbench.pages.runs import runs_text
        from workbench.store.folder import list_runs

        return runs_text(list_runs(self._place), where=str(self.folder))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.runs import runs_html, runs_text
        from workbench.store.folder import list_runs

        entries, where = list_runs(self._place), str(self.folder)
        return {
            "text/html": runs_html(entries, where=where),
            "text/plain": runs_text(entries, where=where),
        }


def runs(folder: str | Path = "runs") -> Runs:
    """The Runs on disk below ``folder``, oldest first."""
    from workbench.store.names import as_folder

    return Runs(as_folder(folder, "runs"))
