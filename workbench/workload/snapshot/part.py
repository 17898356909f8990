"""What was found from some roots, each thing saved in its own way."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn
from torch.utils.data import DataLoader

from workbench.workload.snapshot.objects import (
    SavedArray,
    is_reader,
    save_cell,
    save_dict,
    save_generator,
    save_globals,
    save_items,
    save_position,
    save_slots,
    slot_names,
)
from workbench.workload.snapshot.reach import assigned_globals, reachable
from workbench.workload.snapshot.tensors import SavedTensor, save_storage, save_tensor, storage_of


class Saved(Protocol):
    """One thing that can be put back."""

    def restore(self) -> None:
        """Put it back."""


@dataclass(kw_only=True)
class Part:
    """Saved state: bindings first, then tensors, then what lies in them.

    Numbers that belong to no module, optimizer or gradient scaler and need no gradient (a data
    set, a copy kept by an averaging object) are *loose*; they are copied up to ``loose_bytes``.
    """

    loose_bytes: int
    bindings: list[Saved] = field(default_factory=list)
    tensors: list[SavedTensor] = field(default_factory=list)
    values: list[Saved] = field(default_factory=list)
    loaders: list[tuple[DataLoader[Any], Any]] = field(default_factory=list)
    modes: list[tuple[nn.Module, bool]] = field(default_factory=list)
    left_bytes: int = 0
    """Bytes of loose numbers that were too many to copy."""

    def add(self, target: Any, *, owned: bool, storages: set[tuple[Any, ...]]) -> None:
        """Save one object; ``storages`` are the ones saved so far."""
        if isinstance(target, dict):
            self.bindings.append(save_dict(target))
        elif isinstance(target, list | deque | set | bytearray):
            self.bindings.append(save_items(target))
        elif isinstance(target, Tensor):
            self._add_tensor(target, owned=owned, storages=storages)
        elif isinstance(target, np.ndarray):
            if owned or self._within(target.nbytes):
                self.values.append(SavedArray(target=target, values=np.array(target)))
        elif isinstance(target, CellType):
            self.bindings.append(save_cell(target))
        elif isinstance(target, FunctionType):
            names = assigned_globals(target)
            if names:
                self.bindings.append(save_globals(target.__globals__, names))
        elif is_reader(target):
            position = save_position(target)
            if position is not None:
                self.values.append(position)
        elif not isinstance(target, tuple | frozenset):
            self._add_instance(target)

    def _add_instance(self, target: Any) -> None:
        generator = save_generator(target)
        if generator is not None:
            self.values.append(generator)
        names = slot_names(target)
        if names:
            self.bindings.append(save_slots(target, names))
        if isinstance(target, DataLoader):
            self.loaders.append((target, target.__dict__.get("_iterator")))
        mode = getattr(target, "training", None) if isinstance(target, nn.Module) else None
        if isinstance(mode, bool):  # a frozen TorchScript module has none
            self.modes.append((target, mode))

    def _add_tensor(self, tensor: Tensor, *, owned: bool, storages: set[tuple[Any, ...]]) -> None:
        self.tensors.append(save_tensor(tensor))
        storage = storage_of(tensor)
        if storage is None or storage.nbytes() == 0:
            return
        key = (storage.device, storage.data_ptr(), storage.nbytes())
        if key in storages:
            return
        if owned or tensor.requires_grad or self._within(storage.nbytes()):
            storages.add(key)
            self.values.append(save_storage(storage))

    def _within(self, size: int) -> bool:
        if size > self.loose_bytes:
            self.left_bytes += size
            return False
        self.loose_bytes -= size
        return True


def save_part(
    roots: Iterable[object],
    *,
    seen: dict[int, Any],
    storages: set[tuple[Any, ...]],
    limit: int,
    loose_bytes: int,
) -> Part:
    """Save everything that can be reached from ``roots`` and is not in ``seen`` yet."""
    part = Part(loose_bytes=loose_bytes)
    for target, owned in reachable(roots, seen=seen, limit=limit):
        part.add(target, owned=owned, storages=storages)
    return part
