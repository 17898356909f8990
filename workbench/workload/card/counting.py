"""Counts what operators do while a model runs: FLOPs, bytes, and what is kept for backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

_HEAVY = ("mm", "conv", "attention", "lstm", "gru", "rnn", "linear", "fft", "einsum")
"""Words in the names of operators that do work in products; others count bytes only."""


class Counter:
    """Entered around one step of a model on the meta device."""

    def __init__(self, model: nn.Module) -> None:
        self.moved = 0
        self.unknown: set[str] = set()
        self.trained = False
        self._flops: dict[tuple[str, bool], int] = {}
        self._kept: dict[str, int] = {}
        self._stack: list[str] = []
        self._seen: dict[int, Tensor] = {}
        self._tracker: Any = None
        self._model = model
        self._own = {_storage(each) for each in (*model.parameters(), *model.buffers())}
        self._entered: list[Any] = []
        self._hooks: list[Any] = []
        self._backward = False

    @property
    def here(self) -> str:
        """The module that runs."""
        return self._stack[-1] if self._stack else ""

    def __enter__(self) -> Counter:
        import torch
        from torch.utils.module_tracker import ModuleTracker

        for name, module in self._model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._entering(name)))
            self._hooks.append(module.register_forward_hook(self._leaving()))
        self._tracker = ModuleTracker()
        saved = torch.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor)
        for each in (self._tracker, saved, _mode(self)):
            each.__enter__()
            self._entered.append(each)
        return self

    def __exit__(self, *error: object) -> None:
        while self._entered:
            self._entered.pop().__exit__(None, None, None)
        for hook in self._hooks:
            hook.remove()

    def backward(self, loss: Tensor) -> None:
        """Run backward from the sum of a loss."""
        self.trained = self._backward = True
        loss.sum().backward()  # type: ignore[no-untyped-call]

    def flops(self, module: str, *, backward: bool) -> int:
        """Of a module with its children; of all for the empty name."""
        return self._flops.get((module, backward), 0)

    def activations(self, module: str) -> int:
        """Bytes kept in a module and its children; of all for the empty name."""
        inside = f"{module}."
        return sum(
            size
            for name, size in self._kept.items()
            if not module or name == module or name.startswith(inside)
        )

    def count(self, function: Any, args: Any, kwargs: Any, out: Any) -> None:
        """One operator."""
        from torch.utils.flop_counter import flop_registry

        packet = function._overloadpacket
        formula = flop_registry.get(packet)
        if formula is not None:
            flops = int(formula(*args, **kwargs, out_val=out))
            for name in self._modules():
                key = name, self._backward
                self._flops[key] = self._flops.get(key, 0) + flops
        elif any(word in packet.__name__ for word in _HEAVY):
            self.unknown.add(f"aten::{packet.__name__}")
        if not function.is_view:
            self.moved += sum(map(_bytes, _flat((args, kwargs, out))))

    def _modules(self) -> set[str]:
        """The modules that an operator belongs to, all around it, the model as the empty name."""
        root = type(self._model).__name__
        found = {""}
        for name in self._tracker.parents:
            if name.startswith(f"{root}."):
                found.add(name[len(root) + 1 :])
        return found

    def _keep(self, tensor: Tensor) -> Tensor:
        place = _storage(tensor)
        if place not in self._own and place not in self._seen:
            self._seen[place] = tensor  # held, so that no other storage takes its place
            size = tensor.untyped_storage().nbytes()
            self._kept[self.here] = self._kept.get(self.here, 0) + size
        return tensor

    def own(self, tensors: Any) -> None:
        """Tensors that are kept anyway, such as the batch."""
        self._own |= {_storage(each) for each in tensors}

    def _entering(self, name: str) -> Any:
        return lambda *_: self._stack.append(name)

    def _leaving(self) -> Any:
        def leave(*_: Any) -> None:
            self._stack.pop()

        return leave


def _mode(counter: Counter) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            counter.count(func, args, kwargs or {}, out)
            return out

    return Counting()  # type: ignore[no-untyped-call]


def _flat(value: Any) -> list[Tensor]:
    from workbench.workload.card.meta import tensors_in

    return list(tensors_in(value))


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
