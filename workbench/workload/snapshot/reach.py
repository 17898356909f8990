"""Find what code can reach and change: attributes, containers, closures, globals that it names."""

import dis
import enum
import functools
import itertools
import random
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset, Sampler

from workbench.workload.snapshot.objects import is_reader, slot_names
from workbench.workload.snapshot.services import CONCURRENT, LEFT_ALONE, PLAIN_STDLIB

_TORCH_MODULES = ("torch.nn", "torch.optim", "torch.amp", "torch.cuda.amp", "torch.utils.data")
_TORCH_STATE = (nn.Module, Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler)
_TORCH_DATA = (DataLoader, Dataset, Sampler)
_ATOMS = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, range, slice, type(...)),
        *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format),
        *(types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.FrameType),
        *(types.GeneratorType, types.TracebackType, type, np.dtype),
    }
)
_MAPPINGS = frozenset({dict, OrderedDict, defaultdict})
# Most objects are of these classes; they hold nothing but their members.
_COMMON = frozenset({*_MAPPINGS, list, tuple, set, frozenset, deque})
_CONTAINERS = (dict, list, tuple, set, frozenset, deque, bytearray, types.MappingProxyType)
_PARTS = (
    *(Tensor, np.ndarray, functools.partial),
    *(types.FunctionType, types.MethodType, types.CellType),
)
_RANDOM = (
    *(torch.Generator, random.Random),
    *(np.random.Generator, np.random.RandomState, np.random.BitGenerator),
)

Found = tuple[Any, bool]


def reachable(roots: Iterable[object], *, seen: dict[int, Any], limit: int) -> Iterator[Found]:
    """Walk from ``roots``, nearest objects first.

    Args:
        roots: Where to start.
        seen: Objects already met, by identity; they are left out, and new ones are added. Kept by
            the caller, so that no identity is used twice.
        limit: How many objects are visited at most.

    Yields:
        Each object, and whether it is part of a module, optimizer, scheduler or gradient scaler.
    """
    queue: deque[Found] = deque((root, False) for root in roots)
    visited = 0
    while queue and visited < limit:
        target, owned = queue.popleft()
        if type(target) in _ATOMS or id(target) in seen:
            continue
        seen[id(target)] = target
        shared = False
        if type(target) not in _COMMON:
            if _is_left_alone(target):
                continue
            owned = owned or isinstance(target, _TORCH_STATE)
            owned = owned and not isinstance(target, _TORCH_DATA)
            shared = _is_concurrent(target)
        visited += 1
        if not shared:
            yield target, owned
        for child in _members(target) if shared else _children(target):
            if type(child) in _ATOMS or id(child) in seen:
                continue
            # What a module owns is met before what else its objects lead to.
            (queue.appendleft if owned else queue.append)((child, owned))


def assigned_globals(function: types.FunctionType) -> tuple[str, ...]:
    """Names that ``function``, or a function written inside it, assigns or deletes globally."""
    changing = {"STORE_GLOBAL", "DELETE_GLOBAL"}
    names = {
        step.argval
        for code in _codes(function.__code__)
        for step in dis.get_instructions(code)
        if step.opname in changing
    }
    return tuple(sorted(names))


def _children(target: Any) -> Iterable[Any]:
    kind = type(target)
    if kind in _MAPPINGS:
        return itertools.chain(target.keys(), target.values())
    if kind in _COMMON:
        return target  # type: ignore[no-any-return]
    return _other_children(target)


def _other_children(target: Any) -> Iterator[Any]:
    if isinstance(target, Tensor):
        yield from _of_tensor(target)
    elif isinstance(target, dict | types.MappingProxyType):
        for key, value in target.items():
            yield key
            yield value
    elif isinstance(target, list | tuple | set | frozenset | deque):
        yield from target
    elif isinstance(target, functools.partial):
        yield from (target.func, target.args, target.keywords, target.__dict__)
    elif isinstance(target, types.MethodType):
        yield from (target.__self__, target.__func__)
        yield from _functions_of(type(target.__self__))
    elif isinstance(target, types.FunctionType):
        yield from _of_function(target)
    elif isinstance(target, types.CellType):
        yield from _content(target)
    if not isinstance(target, Tensor | types.FunctionType | functools.partial | types.CellType):
        yield from _of_instance(target)


def _of_tensor(target: Tensor) -> Iterator[Any]:
    if target.is_leaf:
        yield target.grad
        yield getattr(target, "_backward_hooks", None)
        yield getattr(target, "_post_accumulate_grad_hooks", None)
    yield target.__dict__
    flatten = getattr(target, "__tensor_flatten__", None)
    if flatten is not None:
        for name in flatten()[0]:
            yield getattr(target, name)


def _of_function(target: types.FunctionType) -> Iterator[Any]:
    yield from target.__closure__ or ()
    yield target.__defaults__
    yield target.__kwdefaults__
    yield target.__dict__
    if _package(target.__module__) in {"torch", *sys.stdlib_module_names}:
        return
    namespace = target.__globals__
    for code in _codes(target.__code__):
        for name in code.co_names:
            if name in namespace:
                yield namespace[name]


def _of_instance(target: Any) -> Iterator[Any]:
    attributes = getattr(target, "__dict__", None)
    if type(attributes) is dict:
        yield attributes
    for name in slot_names(target):
        yield getattr(target, name, None)
    if isinstance(target, torch.jit.ScriptModule):
        yield from target.parameters()
        yield from target.buffers()
    call = getattr(type(target), "__call__", None)  # noqa: B004
    if isinstance(call, types.FunctionType) and not isinstance(target, nn.Module):
        yield from _functions_of(type(target))


def _functions_of(kind: type) -> Iterator[types.FunctionType]:
    for one in kind.__mro__:
        if _package(one.__module__) not in {"torch", *sys.stdlib_module_names}:
            yield from (f for f in vars(one).values() if isinstance(f, types.FunctionType))


def _content(cell: types.CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:
        return


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_left_alone(target: object) -> bool:
    """Whether an object is a service (file, lock, window …) rather than training state."""
    if isinstance(target, type | types.ModuleType | enum.Enum):
        return True
    if isinstance(target, np.memmap):
        return not target.flags.writeable
    if is_reader(target):
        return False
    if isinstance(target, (*_PARTS, *_TORCH_STATE, *_RANDOM)):
        return False
    if isinstance(target, _TORCH_DATA):
        return _package(type(target).__module__) in LEFT_ALONE
    return any(_is_service_class(kind) for kind in type(target).__mro__)


def _is_service_class(kind: type) -> bool:
    package = _package(kind.__module__)
    if package == "torch":
        return not kind.__module__.startswith(_TORCH_MODULES)
    return package in LEFT_ALONE or (
        package in sys.stdlib_module_names and package not in PLAIN_STDLIB
    )


def _is_concurrent(target: object) -> bool:
    """Whether another thread may be using an object: it holds a lock, a queue or a thread."""
    if isinstance(target, (*_PARTS, *_TORCH_STATE, *_TORCH_DATA, *_RANDOM, *_CONTAINERS)):
        return False
    attributes = getattr(target, "__dict__", None)
    if type(attributes) is not dict:
        return False
    kinds = {type(value) for value in attributes.values()} - _ATOMS
    return any(_package(kind.__module__) in CONCURRENT for kind in kinds)


def _members(target: Any) -> Iterator[Any]:
    """Models, optimizers, tensors and generators directly in an object that others may be using."""
    known = (Tensor, np.ndarray, *_TORCH_STATE, *_RANDOM)
    yield from (value for value in target.__dict__.values() if isinstance(value, known))


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]
