"""Tensors as they were: the same storage, the same bytes in it, the same gradient."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


@dataclass(frozen=True, kw_only=True)
class SavedStorage:
    """The bytes of one storage, copied to host memory.

    Host memory, because a copy on the device would count in the memory that a run measures, and
    could be what makes it run out.
    """

    storage: torch.UntypedStorage
    content: torch.UntypedStorage

    def restore(self) -> None:
        """Write the bytes back into the same storage."""
        if self.storage.nbytes() != self.content.nbytes():
            self.storage.resize_(self.content.nbytes())
        self.storage.copy_(self.content)


@dataclass(frozen=True, kw_only=True)
class SavedTensor:
    """Where a tensor's values lie, and what hangs on it; the values are a :class:`SavedStorage`."""

    tensor: Tensor
    alias: Tensor
    requires_grad: bool
    is_leaf: bool
    grad: Tensor | None
    hooks: Any
    accumulate_hooks: Any
    values: Tensor | None
    """A copy, only for a tensor that has no plain storage."""
    version: Any
    """Puts the count of in-place changes back, so that a graph the user still holds stays valid."""

    def restore(self) -> None:
        """Give the tensor its storage, layout, dtype, gradient and flags back."""
        tensor = self.tensor
        with torch.inference_mode(tensor.is_inference()):
            if not _placed_as(tensor, self.alias):
                tensor.data = self.alias
            if self.values is not None:
                self.alias.copy_(self.values)
                if _holds_its_own(tensor):
                    tensor.data = self.alias
        if self.version is not None:
            self.version.__exit__(None, None, None)
        if not self.is_leaf:
            return
        if tensor.requires_grad != self.requires_grad:
            tensor.requires_grad_(self.requires_grad)
        if tensor.grad is not self.grad:
            tensor.grad = self.grad
        for name, value in zip(_HOOKS, (self.hooks, self.accumulate_hooks), strict=True):
            if getattr(tensor, name, None) is not value:
                setattr(tensor, name, value)

    def return_home(self) -> None:
        """Keep the values of now, in the storage, layout and dtype of before."""
        if not _placed_as(self.tensor, self.alias) and self.alias.shape == self.tensor.shape:
            self.alias.copy_(self.tensor.detach())
            self.tensor.data = self.alias


def save_tensor(tensor: Tensor) -> SavedTensor:
    """Remember where ``tensor`` lies and what hangs on it."""
    leaf = tensor.is_leaf
    alias = tensor.detach()
    plain = storage_of(alias) is not None
    counted = not tensor.is_inference() and tensor.device.type != "meta"
    return SavedTensor(
        tensor=tensor,
        alias=alias,
        requires_grad=tensor.requires_grad,
        is_leaf=leaf,
        grad=tensor.grad if leaf else None,
        hooks=getattr(tensor, _HOOKS[0], None),
        accumulate_hooks=getattr(tensor, _HOOKS[1], None),
        values=None if plain or alias.device.type == "meta" else alias.clone(),
        version=_unsafe_preserve_version_counter(tensor) if counted else None,
    )


def save_storage(storage: torch.UntypedStorage) -> SavedStorage:
    """Copy the bytes of ``storage`` to host memory."""
    content = torch.UntypedStorage(storage.nbytes(), device="cpu")  # type: ignore[no-untyped-call]
    content.copy_(storage)
    return SavedStorage(storage=storage, content=content)


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """The storage under a tensor, or ``None`` when it has no plain one (sparse, meta, wrapper)."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.device.type == "meta":
        return None
    try:
        storage = tensor.untyped_storage()
        storage.data_ptr()
    except (NotImplementedError, RuntimeError):
        return None
    return storage


def _holds_its_own(tensor: Tensor) -> bool:
    """Whether a sparse tensor got other indices than its alias: two of them share no numbers."""
    return not tensor.is_nested and tensor.layout is not torch.strided and not tensor.is_mkldnn


def _placed_as(tensor: Tensor, alias: Tensor) -> bool:
    if tensor.is_nested or alias.is_nested:  # without a shape that could be compared
        return tensor.is_nested is alias.is_nested and tensor.layout is alias.layout
    if (tensor.dtype, tensor.device, tensor.layout, tensor.shape) != (
        alias.dtype,
        alias.device,
        alias.layout,
        alias.shape,
    ):
        return False
    if storage_of(alias) is None:
        return True
    return tensor.data_ptr() == alias.data_ptr() and tensor.stride() == alias.stride()
