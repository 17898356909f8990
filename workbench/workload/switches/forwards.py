"""Put another ``forward`` onto a module for a run; the same one in every run of a workload."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial, wraps
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from workbench.workload.workload import Workload

Forward = Callable[..., Any]

# A compiler takes another function object for another model, and compiles again.
_MADE: WeakKeyDictionary[Workload, dict[tuple[int, str], Forward]] = WeakKeyDictionary()


def put_forward(
    work: Workload,
    module: nn.Module,
    make: Callable[[Any, Forward], Forward],
    undo: ExitStack,
) -> None:
    """Let ``module`` call what ``make`` gives for it and its present ``forward``."""
    forward, attributes = module.forward, module.__dict__
    known = _MADE.setdefault(work, {})
    key = (id(module), make.__qualname__)
    made = known.get(key)
    if made is None or made.__wrapped__ != forward:  # type: ignore[attr-defined]
        made = known[key] = wraps(forward)(make(module, forward))
    if "forward" in attributes:
        undo.callback(partial(attributes.__setitem__, "forward", attributes["forward"]))
    else:
        undo.callback(partial(attributes.pop, "forward", None))
    attributes["forward"] = made
