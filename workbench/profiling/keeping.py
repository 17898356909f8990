"""A measurement that is broken off keeps what it has."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.profiling.writing import Measured, write_run


@contextmanager
def keeping(target: Path, measured: Measured, *, base: Path) -> Iterator[None]:
    """Write the Run when the block raises after its window is whole; the error says where it is.

    Args:
        target: Where the Run goes.
        base: The folder below which a relative target lies.
        measured: Grows inside the block.
    """
    try:
        yield
    except BaseException as error:
        folder = _kept(target, measured, error, base)
        if folder is not None:
            error.add_note(
                f"What was measured until then is kept: wb.open({str(folder)!r}) opens it."
            )
        raise


def _kept(target: Path, measured: Measured, error: BaseException, base: Path) -> Path | None:
    from workbench.workload.interrupts import Deferred

    window, measured.window = measured.window, None
    if window is None:
        return None
    measured.notes.append(f"the run was broken off after its window by {type(error).__name__}")
    with Deferred(deaths=False):
        try:
            return write_run(target, window, measured, base=base)
        except (WorkbenchError, OSError):  # the error that broke it off matters more
            return None
