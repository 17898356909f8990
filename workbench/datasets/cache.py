"""The folder of sets that were made: whole or absent, and never one made by another recipe."""

import errno
import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import DatasetError, WorkbenchError

VARIABLE = "WORKBENCH_CACHE"
"""Environment variable that names another folder for the sets."""
SCHEMA = "workbench.dataset/1"
RECORD = "record.json"
BEING_MADE = ".making-"


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of an installed package that a set was made from."""

    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a set is made; any change here makes another set beside the old one."""

    name: str
    version: int
    parameters: Mapping[str, int]
    versions: Mapping[str, str]
    """Of everything that decides the bytes: Pillow for JPEG files, Python for prose."""
    make: Callable[[Path], list[Source]]
    """Fills an empty folder and says from what."""

    @property
    def folder_name(self) -> str:
        """Name and a digest of all that decides the content."""
        decides = [self.name, self.version, dict(self.parameters), dict(self.versions)]
        text = json.dumps(decides, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def cache_folder() -> Path:
    """Where the sets are: ``WORKBENCH_CACHE``, or the user's cache folder."""
    import platformdirs

    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return Path(platformdirs.user_cache_dir("torch-workbench", appauthor=False)) / "datasets"


def made(recipe: Recipe) -> Path:
    """The folder of the set, made now unless it is there and whole.

    It is made under another name and renamed when it is whole, so a full disk or a killed process
    leaves nothing that could be taken for the set. Of two processes the second waits for the first.

    Raises:
        DatasetError: The cache folder cannot be written, or the disk is full.
    """
    parent = cache_folder()
    final = parent / recipe.folder_name
    if is_whole(final):
        return final
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _alone(parent / f"{recipe.folder_name}.lock"):
            if not is_whole(final):
                _remove_left_over(parent, recipe)
                _make(recipe, final)
    except OSError as error:
        raise _explained(error, recipe, parent) from error
    return final


def is_whole(folder: Path) -> bool:
    """Whether the files are those, in name and size, that the record beside them lists."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return bool(record["schema"] == SCHEMA and record["listing"] == _listing(folder)[0])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _make(recipe: Recipe, final: Path) -> None:
    prefix = f"{BEING_MADE}{recipe.folder_name}-"
    building = Path(tempfile.mkdtemp(prefix=prefix, dir=final.parent))
    try:
        sources = recipe.make(building)
        record = _record(recipe, sources, building)
        (building / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        building.chmod(0o755)
        if final.exists():  # damaged, or it would not be made again
            shutil.rmtree(final)
        building.rename(final)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _record(recipe: Recipe, sources: list[Source], folder: Path) -> dict[str, Any]:
    listing, files, size = _listing(folder)
    return {
        "schema": SCHEMA,
        "name": recipe.name,
        "recipe": recipe.version,
        "parameters": dict(recipe.parameters),
        "versions": {"python": platform.python_version(), **recipe.versions},
        "sources": [{"name": source.name, "sha256": source.sha256} for source in sources],
        "files": files,
        "bytes": size,
        "listing": listing,
    }


def _listing(folder: Path) -> tuple[str, int, int]:
    """Digest of names and sizes of all files but the record, their number and bytes."""
    digest, files, total = hashlib.sha256(), 0, 0
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(at) / name
            within = path.relative_to(folder).as_posix()
            if within == RECORD:
                continue
            size = path.stat().st_size
            digest.update(f"{within} {size}\n".encode())
            files, total = files + 1, total + size
    return digest.hexdigest(), files, total


def _remove_left_over(parent: Path, recipe: Recipe) -> None:
    """What killed processes left; nobody else makes this set while we hold its lock."""
    for path in parent.glob(f"{BEING_MADE}{recipe.folder_name}-*"):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process; without locks the rename still keeps sets whole."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as file:
        with suppress(OSError):  # some network file systems have none
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _explained(error: OSError, recipe: Recipe, parent: Path) -> WorkbenchError:
    what = f"The data set {recipe.name!r} could not be made in {parent}: "
    elsewhere = f"set {VARIABLE} to a folder on another disk."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DatasetError(f"{what}the disk is full. Free some room there, or {elsewhere}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
        return DatasetError(f"{what}it cannot be written. Change its rights, or {elsewhere}")
    return DatasetError(f"{what}{error.strerror or error}. Try again, or {elsewhere}")
