"""An error of the user's code in words: the error itself holds frames, batches, graphs."""

import traceback
from contextlib import suppress

from workbench.errors import SettingError, WorkbenchError
from workbench.profiling.memory import is_out_of_memory

_MOST = 500
_LESS = "Use a smaller batch_size, accumulation, checkpointing or a lower precision."


def told(error: BaseException, held: str = "") -> tuple[str, str]:
    """What happened and what to do.

    Args:
        error: What was raised.
        held: Of one that says that memory ran out, who held it.
    """
    text = " ".join(str(error).split())[:_MOST] or type(error).__name__
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    if is_out_of_memory(error):
        return (
            f"Memory ran out: {ended}",
            f"{_LESS} {held}".strip(),
        )
    if isinstance(error, SettingError):
        return ended, "Leave the setting out, or choose another value."
    if isinstance(error, WorkbenchError):
        return ended, "Do what the message says, then start again."
    return (
        f"{type(error).__name__}: {ended}",
        "Look at the step and its batch by hand; start() goes on with the next batch.",
    )


def forget(error: BaseException) -> None:
    """Let go of what the frames of an error hold."""
    seen: BaseException | None = error
    while seen is not None:
        with suppress(RuntimeError):
            traceback.clear_frames(seen.__traceback__)
        seen.__traceback__ = None
        seen = seen.__cause__ or seen.__context__
