"""Why a worker process of a loader is gone, in words that help."""

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from workbench.errors import WorkloadError
from workbench.machine import shared_memory
from workbench.units import bytes_text

_TORCH = "DataLoader worker"
_LEAVING_S = 1.0
"""How long a worker whose connection broke may take to be gone."""
_NO_ROOM = ("shared memory", "</torch_")
"""In what torch says when it cannot get, or write, a file in /dev/shm."""


@contextmanager
def worker_death_explained(workers: Iterable[Any] = ()) -> Iterator[None]:
    """Torch tells of a dead worker at once, in whatever the main thread does just then.

    Args:
        workers: Processes of the loader; how they ended says more than that they did.

    Raises:
        WorkloadError: A worker died inside the block.
    """
    try:
        yield
    except (RuntimeError, OSError, EOFError) as error:
        why = explain_worker_death(error, workers)
        if why is None:
            raise
        raise WorkloadError(why) from error


def explain_worker_death(error: BaseException, workers: Iterable[Any] = ()) -> str | None:
    """What to do about torch's word that a worker died; ``None`` for any other error."""
    text = str(error).partition("\n")[0]
    if isinstance(error, RuntimeError | OSError) and _lacks_room(str(error)):
        return _no_room()
    if not isinstance(error, RuntimeError):
        if not _while_taking(error):
            return None
        text = "it was gone while its batch was taken over"
    elif not text.startswith(_TORCH):
        return None
    ended = _ended(workers)
    how = "" if ended is None else f"; {_how(ended)}"
    if "Bus error" in text or "SIGBUS" in how:
        return _no_room()
    if "signal: Killed" in text or "SIGKILL" in how:
        return (
            f"a worker of the loader was killed from outside ({text}), most often because memory "
            "ran out: use fewer workers or smaller batches."
        )
    return (
        f"a worker of the loader died ({text}{how}): what it printed says why; workers=0 loads in "
        "this process, where the error comes up by itself."
    )


def _no_room() -> str:
    room = shared_memory()
    size = "" if room is None else f" ({bytes_text(room.size)}, {bytes_text(room.free)} free)"
    return (
        f"a worker of the loader had no shared memory left for its batch: /dev/shm{size} holds "
        "workers × prefetch_factor batches. Give the container more (docker run "
        "--shm-size=8g), or use fewer workers or a smaller prefetch_factor."
    )


def _lacks_room(text: str) -> bool:
    """Whether a worker raised because /dev/shm was full."""
    return f"in {_TORCH}" in text and "No space left" in text and any(n in text for n in _NO_ROOM)


def _ended(workers: Iterable[Any]) -> int | None:
    """How the first of these processes that failed has ended; they may take a moment."""
    known, end = list(workers), time.monotonic() + _LEAVING_S
    while known:
        code = next((worker.exitcode for worker in known if worker.exitcode), None)
        if code is not None or time.monotonic() > end:
            return code
        time.sleep(0.01)
    return None


def _how(ended: int) -> str:
    if ended > 0:
        return f"it exited with code {ended}"
    try:
        return f"it ended by {signal.Signals(-ended).name}"
    except ValueError:
        return f"it ended by signal {-ended}"


def _while_taking(error: BaseException) -> bool:
    """Whether a connection broke while a tensor was fetched from the process that made it."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "torch.multiprocessing.reductions":
            return True
        trace = trace.tb_next
    return False
