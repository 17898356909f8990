"""Why a worker process of a loader is gone, in words that help."""

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.errors import WorkloadError
from workbench.machine import shared_memory
from workbench.units import bytes_text

_TORCH = "DataLoader worker"


@contextmanager
def worker_death_explained() -> Iterator[None]:
    """Torch tells of a dead worker at once, in whatever the main thread does just then.

    Raises:
        WorkloadError: A worker died inside the block.
    """
    try:
        yield
    except (RuntimeError, OSError, EOFError) as error:
        why = explain_worker_death(error)
        if why is None:
            raise
        raise WorkloadError(why) from error


def explain_worker_death(error: Exception) -> str | None:
    """What to do about torch's word that a worker died; ``None`` for any other error."""
    text = str(error).partition("\n")[0]
    if not isinstance(error, RuntimeError):
        if not _while_taking(error):
            return None
        text = "it was gone while its batch was taken over"
    elif not text.startswith(_TORCH):
        return None
    if "Bus error" in text:
        room = shared_memory()
        size = "" if room is None else f" ({bytes_text(room.size)}, {bytes_text(room.free)} free)"
        return (
            f"a worker of the loader had no shared memory left for its batch: /dev/shm{size} holds "
            "workers × prefetch_factor batches. Give the container more (docker run "
            "--shm-size=8g), or use fewer workers or a smaller prefetch_factor."
        )
    if "Killed" in text:
        return (
            f"a worker of the loader was killed from outside ({text}), most often because memory "
            "ran out: use fewer workers or smaller batches."
        )
    return (
        f"a worker of the loader died ({text}): what it printed says why; workers=0 loads in this "
        "process, where the error comes up by itself."
    )


def _while_taking(error: Exception) -> bool:
    """Whether a connection broke while a tensor was fetched from the process that made it."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "torch.multiprocessing.reductions":
            return True
        trace = trace.tb_next
    return False
