"""Whether a model or step enters autocast regions of its own, which decide inside them."""

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from torch import nn

from workbench.settings import Precision
from workbench.workload.workload import Workload


def own_autocast(work: Workload, precision: Precision | None) -> Iterator[str]:
    """What to say where the code itself chooses a precision inside that of the settings."""
    if precision is None:
        return
    names = [name for name, function in _functions(work) if _enters_autocast(function)]
    if names:
        yield (
            f"{', '.join(names[:3])} enters autocast by itself: precision={precision!r} acts "
            "outside of that region only"
        )


def _functions(work: Workload) -> Iterator[tuple[str, Any]]:
    if work.step is not None:
        yield getattr(work.step, "__name__", "step"), work.step
    if not isinstance(work.model, nn.Module):
        return
    kinds = {type(module): None for module in work.model.modules()}
    for kind in kinds:
        if not kind.__module__.startswith("torch."):
            yield f"{kind.__name__}.forward", kind.forward


def _enters_autocast(function: Any) -> bool:
    """By the names that its code uses, or the decorator around it."""
    while function is not None:
        names = set(_names(function.__code__)) if isinstance(function, FunctionType) else set()
        if names & {"autocast", "decorate_autocast"}:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def _names(code: CodeType) -> Iterator[str]:
    yield code.co_name
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
