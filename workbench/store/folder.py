"""One Run, one folder: read it, list those that are there, delete one."""

import shutil
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.errors import RunError
from workbench.store.record import RECORD_NAME, RunRecord, decode
from workbench.store.writing import temporary_path


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """What a list shows of one Run."""

    folder: Path
    name: str
    created: str
    settings: dict[str, Any]
    step_ns: float | None
    """Median step of record, warm-up left out; ``None`` when it was not measured."""
    size_bytes: int


def read_record(folder: str | Path) -> RunRecord:
    """What ``run.json`` of a Run folder says.

    Raises:
        RunError: the folder is no Run, or its record is damaged or from a newer version.
    """
    path = Path(folder) / RECORD_NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunError(
            f"{folder} is not a Run folder ({RECORD_NAME} cannot be read: {error.strerror}). "
            "wb.runs() lists those that are there."
        ) from error
    return decode(data, where=str(path))


def list_runs(parent: str | Path) -> list[RunEntry]:
    """The whole Runs in ``parent``, newest last; anything else there is passed over."""
    parent = Path(parent)
    if not parent.is_dir():
        return []
    entries = []
    for folder in sorted(parent.iterdir()):
        if folder.name.startswith(".") or not (folder / RECORD_NAME).is_file():
            continue
        try:
            record = read_record(folder)
            if all((folder / trace).is_file() for trace in record.traces):
                entries.append(_entry(folder, record))
        except (RunError, OSError):
            continue  # opening it says what is wrong; the others must still be listed
    return sorted(entries, key=lambda entry: _instant(entry.created))


def delete_run(folder: str | Path) -> None:
    """Delete a Run folder; anything that is not one is refused and left alone.

    Raises:
        RunError: the folder is not a Run, is a link, or is still in use.
    """
    folder = Path(folder)
    if folder.is_symlink():
        raise RunError(f"{folder} is a link, not a Run folder: remove the link yourself.")
    read_record(folder)
    folder = folder.resolve()
    doomed = temporary_path(folder.parent, folder.name)
    try:
        folder.rename(doomed)
        shutil.rmtree(doomed)
    except OSError as error:
        raise RunError(
            f"{folder} could not be deleted ({error.strerror}): close what still uses it."
        ) from error


def _entry(folder: Path, record: RunRecord) -> RunEntry:
    timings = record.timings
    steady = [] if timings is None else timings.step_ns[timings.warmup :]
    return RunEntry(
        folder=folder,
        name=record.name,
        created=record.created,
        settings=record.settings,
        step_ns=statistics.median(steady) if steady else None,
        size_bytes=sum(file.stat().st_size for file in folder.iterdir() if file.is_file()),
    )


def _instant(created: str) -> datetime:
    try:
        found = datetime.fromisoformat(created)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
