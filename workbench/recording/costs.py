"""What one step asks of its operators: every call with its inputs, its results and its module.

A mode of torch's dispatcher sees each operator below autograd, forward and backward. It notes what
was asked and calls it as it was asked; it changes nothing and keeps no tensor.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

from workbench.recording.cost_modules import ModulePaths

MOST_CALLS = 100_000
"""Own choice: a step of more calls is no step; what comes later is not noted."""


_DENSE = ("torch.strided", "torch._mkldnn")


class TooLongError(Exception):
    """The step has used up the time that it was given."""


@dataclass(kw_only=True)
class Noted:
    """Calls of one operator with the same inputs."""

    name: str
    shapes: list[Any]
    types: list[Any]
    values: list[Any]
    strides: list[Any]
    outputs: list[Any]
    output_types: list[Any]
    pointwise: bool
    at: list[str] = field(default_factory=list)
    """Of every call its place in the step, its phase and its module: ``17f3``."""

    def to_json(self) -> dict[str, Any]:
        """For ``run.json``."""
        return {
            "name": self.name,
            "key": key_of(self.shapes),
            "shapes": self.shapes,
            "types": self.types,
            "values": self.values,
            **({"strides": self.strides} if self.strides else {}),
            "outputs": self.outputs,
            "output_types": self.output_types,
            "pointwise": self.pointwise,
            "count": len(self.at),
            "at": " ".join(self.at),
        }


class CostMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the calls of a step while it is active.

    Args:
        paths: Knows the module that runs.
        left_s: Seconds after which the step is broken off by :class:`TooLongError`.
    """

    def __init__(self, paths: ModulePaths, left_s: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.noted: dict[tuple[Any, ...], Noted] = {}
        self.count = 0
        self.broken: str | None = None
        """Why a call could not be noted."""
        self._paths = paths
        self._end = time.monotonic() + left_s

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call the operator as it was asked, and note it."""
        kwargs = kwargs or {}
        if time.monotonic() > self._end:
            raise TooLongError
        if any(is_traceable_wrapper_subclass(each) for each in _tensors((args, kwargs))):
            return NotImplemented  # its own operators, which it is made of, come here
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            with self:  # below autograd only where nothing is differentiated
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        where = self._paths.here()
        made = func(*args, **kwargs)
        counts = func.namespace != "profiler"  # a mark of a range
        if counts and self.count < MOST_CALLS and self.broken is None:
            try:
                self._note(func, args, kwargs, made, where)
            except Exception as error:  # noqa: BLE001 - noting must not end the user's step
                self.broken = f"{func.name()}: {type(error).__name__}: {error}"[:300]
        return made

    def _note(self, func: Any, args: Any, kwargs: Any, made: Any, where: str) -> None:
        given = list(_arguments(func._schema, args, kwargs))
        shapes, kinds = [_shape(each) for each in given], [_kind(each) for each in given]
        values = [_value(each) for each in given]
        strides = [_strides(each) for each in given] if any(map(_repeats, given)) else []
        results = made if isinstance(made, tuple) else (made,)
        outputs = [_shape(each) for each in results]
        name = str(func.name()).partition(".")[0]
        key = (name, *map(repr, (shapes, kinds, values, strides, outputs)))
        if key not in self.noted:
            self.noted[key] = Noted(
                name=name,
                shapes=shapes,
                types=kinds,
                values=values,
                strides=strides,
                outputs=outputs,
                output_types=[_kind(each) for each in results],
                pointwise=torch.Tag.pointwise in func.tags,
            )
        self.noted[key].at.append(f"{self.count}{where}")
        self.count += 1


def key_of(shapes: Sequence[Any]) -> str:
    """The shapes as a trace of the profiler writes them: of what has none ``[]``."""
    import json

    return json.dumps([[] if each is None else each for each in shapes], separators=(",", ":"))


def _arguments(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """All arguments in their order, also those that were left to their defaults."""
    for at, argument in enumerate(schema.arguments):
        if at < len(args) and not argument.kwarg_only:
            yield args[at]
        else:
            yield kwargs.get(argument.name, argument.default_value)


def _tensors(found: Any) -> Iterator[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, list | tuple):
        for each in found:
            yield from _tensors(each)
    elif isinstance(found, dict):
        for each in found.values():
            yield from _tensors(each)


def _shape(found: Any) -> Any:
    """Sizes; of a list of tensors a list of them; ``[]`` for what is no tensor."""
    if isinstance(found, torch.Tensor):
        if found.is_nested:
            return []
        return [int(n) if isinstance(n, int) else None for n in found.shape]
    if isinstance(found, list | tuple) and any(isinstance(n, torch.Tensor) for n in found):
        return [_shape(each) for each in found]
    return []


def _kind(found: Any) -> Any:
    """The type of a tensor's elements, or what is special about it."""
    if isinstance(found, torch.Tensor):
        if found.is_nested:
            return "nested"
        if str(found.layout) not in _DENSE:
            return "sparse"
        return str(found.dtype).removeprefix("torch.")
    if isinstance(found, list | tuple) and any(isinstance(n, torch.Tensor) for n in found):
        return [_kind(each) for each in found]
    return ""


def _value(found: Any) -> Any:
    """A plain argument; ``None`` for tensors and whatever else."""
    if found is None or isinstance(found, bool | int | str):
        return found
    if isinstance(found, float):
        return found if found == found and abs(found) != float("inf") else str(found)  # noqa: PLR0124
    if isinstance(found, list | tuple) and all(isinstance(n, bool | int) for n in found):
        return list(found)
    return None


def _repeats(found: Any) -> bool:
    return (
        isinstance(found, torch.Tensor)
        and found.layout == torch.strided
        and not found.is_nested
        and 0 in found.stride()
    )


def _strides(found: Any) -> list[int]:
    if isinstance(found, torch.Tensor) and found.layout == torch.strided and not found.is_nested:
        return [int(n) for n in found.stride()]
    return []
