"""Which module an operator of a step belongs to, in the forward and in the backward pass.

A node of the autograd graph carries a number, which is drawn when its operator runs forward. The
operators of the backward pass run inside a node: its number tells the module.
"""

import threading
from contextlib import ExitStack
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.optim import optimizer as optimizers

Phase = Literal["f", "b", "o"]
"""Forward, backward, or inside an optimizer's step."""


class ModulePaths:
    """Follows the modules that run, while it is entered; hooks are gone afterwards.

    Args:
        model: What a step calls; its modules are named by their path in it, itself by its class.
    """

    def __init__(self, model: Any) -> None:
        self.paths: list[str] = []
        """The paths that were met, by their numbers."""
        self._names: dict[int, str] = {}
        self._kept: list[nn.Module] = []
        self._numbers: dict[str, int] = {}
        self._owners: dict[int, str] = {}
        self._nodes: dict[int, str] = {}
        self._stacks: dict[int, list[str]] = {}
        self._optimizing = 0
        self._hooks = ExitStack()
        if isinstance(model, nn.Module):
            self._name(model)

    def __enter__(self) -> "ModulePaths":
        for handle in (
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
            optimizers.register_optimizer_step_pre_hook(self._begin_optimizer),
            optimizers.register_optimizer_step_post_hook(self._end_optimizer),
        ):
            self._hooks.callback(handle.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()
        for each in (self._names, self._kept, self._owners, self._nodes, self._stacks):
            each.clear()

    def here(self) -> str:
        """Phase and number of the module of an operator that starts now; no number outside any."""
        node, running = torch._C._current_autograd_node(), self._running
        path = running[-1] if running else None
        if path is not None and torch.is_grad_enabled():
            # The node was made before its operator came here; one without a node is of no matter.
            self._nodes.setdefault(torch._C._autograd._get_sequence_nr() - 1, path)
        phase: Phase = "o" if self._optimizing else "f"
        if node is not None:  # with a module, it is a checkpoint's, which runs forward again
            phase, path = "b", path or self._of_node(node)
        return phase if path is None else f"{phase}{self._number(path)}"

    @property
    def _running(self) -> list[str]:
        """The modules that run in this thread, the innermost last."""
        return self._stacks.setdefault(threading.get_ident(), [])

    def _of_node(self, node: Any) -> str | None:
        owner = getattr(node, "variable", None)
        if owner is not None:  # the node that adds up the gradient of a parameter
            return self._owners.get(id(owner))
        return self._nodes.get(node._sequence_nr())

    def _number(self, path: str) -> int:
        if path not in self._numbers:
            self._numbers[path] = len(self.paths)
            self.paths.append(path)
        return self._numbers[path]

    def _name(self, root: nn.Module) -> None:
        name = type(root).__name__
        self._kept.append(root)  # an address names it only for as long as it lives
        for path, each in root.named_modules():
            self._names.setdefault(id(each), f"{name}.{path}" if path else name)
            for parameter in each.parameters(recurse=False):
                self._owners.setdefault(id(parameter), self._names[id(each)])

    def _enter(self, module: nn.Module, _: Any) -> None:
        if id(module) not in self._names:
            self._name(module)
        self._running.append(self._names[id(module)])

    def _leave(self, _: nn.Module, __: Any, ___: Any) -> None:
        if running := self._running:
            running.pop()

    def _begin_optimizer(self, *_: Any) -> None:
        self._optimizing += 1

    def _end_optimizer(self, *_: Any) -> None:
        self._optimizing = max(0, self._optimizing - 1)
