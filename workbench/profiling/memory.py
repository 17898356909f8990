"""Out of memory is a moment that is handled: named as what it is, with everything put back."""

from collections.abc import Iterator
from contextlib import contextmanager

_REMEDY = (
    "wb.profile put everything back. Try Settings(batch_size=...) smaller, "
    "Settings(accumulation=...), or a lower precision."
)


@contextmanager
def explain_out_of_memory() -> Iterator[None]:
    """Add the remedy to an out-of-memory error, and let the error through."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error) and _REMEDY not in getattr(error, "__notes__", ()):
            error.add_note(_REMEDY)
        raise


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory of the host or the device ran out."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error)
    return "can't allocate memory" in text or "out of memory" in text
