"""Which learning rate people choose for another batch size; it is named, never set."""

from collections.abc import Iterator

from torch.optim import SGD, Optimizer

from workbench.settings import Settings
from workbench.workload.source import Source
from workbench.workload.workload import Workload


def rate_rule(work: Workload, source: Source, settings: Settings) -> Iterator[str]:
    """What to say of the learning rate when a setting changes the batch size.

    In proportion for SGD (Goyal et al., 2017, arXiv:1706.02677), by the square root for optimizers
    that divide by the size of gradients (Malladi et al., 2022, arXiv:2205.10287).
    """
    size, given = settings.batch_size, source.given_batch_size
    if size is None or given is None or size == given or not work.optimizers:
        return
    ratio = size / given
    rules = {type(one).__name__: f"× {_factor(one, ratio):.3g}" for one in work.optimizers}
    yield (
        f"batch size {size} is {ratio:.3g} times the loop's {given}; the learning rate was left as "
        f"it is. The usual rule is {', '.join(f'{name}: {rule}' for name, rule in rules.items())}, "
        "to be checked by training"
    )


def _factor(optimizer: Optimizer, ratio: float) -> float:
    return float(ratio if isinstance(optimizer, SGD) else ratio**0.5)
