"""The folder of a search: each thing that was measured is written at once, and never again."""

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, SettingError
from workbench.store.names import free_names, safe_name
from workbench.store.writing import check_writable

if TYPE_CHECKING:
    from workbench.workload import Workload

HEADER = "tuning.json"
EVENTS = "trials"
SCHEMA = "workbench.tuning-folder/1"


class Journal:
    """What was measured so far, by what was asked; ``get`` answers without measuring again.

    Args:
        folder: An existing folder with a header.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._events = {_key(event["asked"]): event["answer"] for event in _read_events(folder)}
        self._number = _highest(folder)
        self.lost: str | None = None
        """Why the folder does not hold everything: the disk became full, or went away."""

    def get(self, kind: str, **asked: Any) -> dict[str, Any] | None:
        """The answer to the same question, where it is known."""
        return self._events.get(_key({"kind": kind, **asked}))

    def add(self, answer: Mapping[str, Any], kind: str, **asked: Any) -> None:
        """Write an answer, whole or not at all, also when an interrupt comes."""
        from workbench.workload.interrupts import Deferred

        question = {"kind": kind, **asked}
        with Deferred(deaths=False):
            self._number += 1
            name = f"{self._number:04}-{safe_name(kind)}.json"
            try:
                _write(self.folder / EVENTS / name, {"asked": question, "answer": dict(answer)})
            except OSError as error:  # what was measured is worth more than its file
                self.lost = error.strerror or str(error)
            self._events[_key(question)] = dict(answer)

    def forget_if_empty(self) -> None:
        """Remove a folder in which nothing was measured."""
        if self._events or (self.folder / "profiles").exists():
            return
        with suppress(OSError):
            (self.folder / EVENTS).rmdir()
            (self.folder / HEADER).unlink()
            self.folder.rmdir()

    def once(self, act: Callable[[], Mapping[str, Any]], kind: str, **asked: Any) -> dict[str, Any]:
        """The known answer, or what ``act`` finds, which is written down."""
        known = self.get(kind, **asked)
        if known is None:
            known = dict(act())
            self.add(known, kind, **asked)
        return known


def open_journal(folder: Path | None, parent: Path, name: str, about: Mapping[str, Any]) -> Journal:
    """Continue in ``folder`` if a search of the same workload is there, else begin one.

    Args:
        folder: Where the user wants it; ``None`` makes a new one in ``parent``.
        parent: Where a new one is made.
        name: What a new one is called; a taken name gets a number.
        about: What makes the workload, the search and the machine what they are.

    Raises:
        SettingError: Another workload was tuned there.
        RunError: The folder holds something else, or cannot be written.
    """
    check_writable(folder or parent)
    if folder is not None and (folder / HEADER).exists():
        _check_same(folder, about)
        return Journal(folder)
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise RunError(
            f"{folder} holds other things and no tuning: give folder=... a new name, or that of a "
            "tuning to go on with."
        )
    return Journal(_begun(folder, parent, name, about))


def _begun(folder: Path | None, parent: Path, name: str, about: Mapping[str, Any]) -> Path:
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        else:
            parent.mkdir(parents=True, exist_ok=True)
            for candidate in free_names(parent, safe_name(name)):
                folder = parent / candidate
                try:
                    folder.mkdir()
                except FileExistsError:
                    continue  # somebody took the name since we looked
                break
        if folder is None:
            raise AssertionError("there is always another name")
        (folder / EVENTS).mkdir(exist_ok=True)
        _write(folder / HEADER, {"schema": SCHEMA, "about": dict(about)})
    except OSError as error:
        raise RunError(
            f"the tuning could not be written ({error}): give folder=... a place that you may "
            "write to."
        ) from error
    return folder


def _check_same(folder: Path, about: Mapping[str, Any]) -> None:
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        before = {"format": header["schema"], **header["about"]}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise RunError(
            f"{folder / HEADER} cannot be read ({error}): give another folder=..."
        ) from error
    now = json.loads(json.dumps({"format": SCHEMA, **about}))
    differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if differing:
        told = "; ".join(
            f"{name} was {before.get(name)!r} and is {now.get(name)!r}" for name in differing[:3]
        )
        raise SettingError(
            f"{folder} holds the tuning of something else, with which this one cannot go on: "
            f"{told}. Give another folder=..., or leave it out."
        )


def identity(work: "Workload") -> dict[str, Any]:
    """What must be the same for a search to go on: parts of the workload, torch, the machine."""
    import torch
    from torch import nn

    from workbench.machine import usable_cpus

    model, data = work.model, work.data
    weights: list[Any] = []
    if isinstance(model, nn.Module):
        weights = [[name, list(p.shape), str(p.dtype)] for name, p in model.named_parameters()]
    return {
        "title": work.title,
        "model": type(model).__name__,
        "weights": _digest(weights),
        "data": type(data).__name__,
        "samples": _length(data),
        "batch size": work.batch_size or getattr(data, "batch_size", None),
        "loss": _name(work.loss),
        "step": _name(work.step),
        "optimizers": [type(one).__name__ for one in work.optimizers],
        "device": str(work.device or next(_devices(model), "")),
        "torch": str(torch.__version__),
        "usable processors": usable_cpus(),
    }


def _devices(model: Any) -> Iterator[str]:
    parameters = getattr(model, "parameters", None)
    return (str(p.device) for p in parameters()) if callable(parameters) else iter(())


def _digest(value: Any) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except Exception:  # noqa: BLE001 - of the user's class; many have no length
        return None


def _name(function: Any) -> str | None:
    if function is None:
        return None
    return getattr(function, "__qualname__", type(function).__name__)


def _key(asked: Mapping[str, Any]) -> str:
    return json.dumps(asked, sort_keys=True)


def _read_events(folder: Path) -> list[dict[str, Any]]:
    """All events in order; a file that is not whole or not ours is left out."""
    found = []
    for path in sorted((folder / EVENTS).glob("*.json")):
        try:
            event = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(event["asked"], dict) and isinstance(event["answer"], dict):
                found.append(event)
        except (ValueError, KeyError, TypeError, OSError):
            continue
    return found


def _highest(folder: Path) -> int:
    numbers = [path.name.partition("-")[0] for path in (folder / EVENTS).glob("*.json")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """Whole or absent, and never over another file."""
    text = json.dumps(value, indent=1, allow_nan=False)
    waiting = path.parent / f".{secrets.token_hex(4)}.partial"
    try:
        waiting.write_text(text, encoding="utf-8")
        _publish(waiting, path)
    finally:
        waiting.unlink(missing_ok=True)


def _publish(waiting: Path, path: Path) -> None:
    try:
        os.link(waiting, path)
    except FileExistsError:
        raise RunError(f"{path} is there already: another tuning writes to this folder.") from None
    except OSError:  # a file system without links
        waiting.replace(path)
