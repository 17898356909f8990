"""The modules and optimizers that a step can reach, also those that only a closure holds."""

from torch import nn
from torch.optim import Optimizer

from workbench.workload.snapshot.reach import reachable
from workbench.workload.workload import Workload

_OBJECTS = 2_000_000


def training_parts(work: Workload) -> tuple[list[nn.Module], list[Optimizer]]:
    """The outermost modules, and the optimizers, of a workload.

    With a step of the user's own that is whatever the step can reach; without one it is what the
    workload names.
    """
    if work.step is None:
        modules = [part for part in (work.model, work.loss) if isinstance(part, nn.Module)]
        return modules, list(work.optimizers)
    roots = (work.model, work.loss, work.optimizer, work.step)
    found = [target for target, _ in reachable(roots, seen={}, limit=_OBJECTS)]
    modules = [part for part in found if isinstance(part, nn.Module)]
    inner = {id(child) for part in modules for child in part.modules() if child is not part}
    outermost = [part for part in modules if id(part) not in inner]
    return outermost, [part for part in found if isinstance(part, Optimizer)]
