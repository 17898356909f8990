"""What came of a setting whose block ended in an error: a result, in words for the user."""

from workbench.errors import RankError, SettingError, TimeLimitError
from workbench.profiling.memory import is_out_of_memory
from workbench.tuning.trial import Outcome

LONGEST = 300
_NO_SHARED_MEMORY = "no shared memory left"
"""In what our own loader says when /dev/shm was full."""


def outcome_of(error: Exception) -> tuple[Outcome, str]:
    """The kind of failure, and why; the error itself is not kept, it holds frames and tensors."""
    said = str(error)
    if isinstance(error, RankError):  # its traceback is for people who see the error itself
        said = said.partition("\n\n")[0]
    text = " ".join(said.split())[:LONGEST] or type(error).__name__
    if isinstance(error, SettingError):
        return "refused", text
    if isinstance(error, TimeLimitError):
        return "timed_out", text
    if is_out_of_memory(error) or _NO_SHARED_MEMORY in text:
        return "out_of_memory", text
    return "error", f"{type(error).__name__}: {text}"
