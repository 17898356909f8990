"""What a job carries to its ranks, as bytes in a file; and why a part cannot be carried."""

import os
import pickle
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.errors import MissingExtraError, WorkloadError

JOB = "job.pkl"


def pack(folder: Path, function: Callable[..., Any], payload: Mapping[str, Any]) -> None:
    """Write what every rank runs; classes and functions of a notebook go by value.

    Raises:
        WorkloadError: Naming the part that cannot be pickled.
    """
    pickler = _cloudpickle()
    try:
        data = pickler.dumps((function, dict(payload)))
    except Exception as error:
        raise WorkloadError(_explain(payload, error)) from error
    (folder / JOB).write_bytes(data)


def unpack(folder: Path) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What :func:`pack` wrote.

    Raises:
        WorkloadError: Others can write into the folder: what is unpickled may run anything.
    """
    held = folder.stat()
    if held.st_uid != os.geteuid() or held.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise WorkloadError(
            f"{folder} can be written by others, so no job is read from it: let TMPDIR name a "
            "folder whose files only you can write."
        )
    function, payload = pickle.loads((folder / JOB).read_bytes())  # noqa: S301
    return function, payload


def dumps(value: Any) -> bytes:
    """Any value as bytes, classes of a notebook included."""
    data: bytes = _cloudpickle().dumps(value)
    return data


def _cloudpickle() -> Any:
    try:
        import cloudpickle
    except ModuleNotFoundError as missing:
        raise MissingExtraError("cloudpickle", "torch", "Starting ranks") from missing
    return cloudpickle


def _explain(payload: Mapping[str, Any], error: BaseException) -> str:
    for name, part in payload.items():
        for inner, value in ((name, part), *_members(part)):
            why = _why(value)
            if why is not None and not any(_why(v) for _, v in _members(value)):
                return (
                    f"{inner} cannot be carried to the ranks, because a part of it cannot be "
                    f"pickled ({why}): open files, connections and locks where they are first "
                    "used, and give a generator as a function that makes it."
                )
    return f"the workload cannot be carried to the ranks, because it cannot be pickled ({error})."


def _members(part: Any) -> list[tuple[str, Any]]:
    names = ("model", "data", "loss", "optimizer", "scheduler", "step")
    found = [(name, getattr(part, name)) for name in names if hasattr(part, name)]
    return found if len(found) == len(names) else []


def _why(value: Any) -> str | None:
    try:
        dumps(value)
    except Exception as error:  # noqa: BLE001 - objects of the user's own
        return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return None
