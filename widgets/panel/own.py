"""What the user's work has by itself: the value behind every *as yours*."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.settings import Settings

if TYPE_CHECKING:
    from workbench.workload import Workload


def own_values(work: "Workload") -> dict[str, Any]:
    """Values by the name of their setting; what is not known is left out.

    A function that gives the data is not called for it.
    """
    import torch

    from workbench.workload.effective import effective_values
    from workbench.workload.placement import model_device
    from workbench.workload.source import Source, open_source
    from workbench.workload.workload import is_factory

    try:
        with ExitStack() as undo:
            if is_factory(work.data):
                source = Source(epoch=work.data, kind="function", loader=None)
            else:
                source = open_source(work, Settings(), [], undo)
            device = torch.device(work.device) if work.device else model_device(work.model)
            found = effective_values(work, source, Settings(), device)
    except WorkbenchError:
        return {}  # starting says what is wrong
    return {name: value for name, value in found.items() if value is not None}
