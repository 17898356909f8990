"""Compute the activations of chosen blocks again in backward instead of keeping them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.grad_mode import _unsafe_preserve_version_counter
from torch.utils.checkpoint import checkpoint

from workbench.errors import SettingError
from workbench.workload.switches.forwards import Forward, put_forward
from workbench.workload.workload import Workload

_MOST_CANDIDATES = 12


def checkpoint_blocks(work: Workload, names: Sequence[str], undo: ExitStack) -> str | None:
    """Checkpoint the blocks of these module types or qualified names, the outermost of each branch.

    Returns:
        What to say of it, where a chosen block lies inside another one.

    Raises:
        SettingError: When a name fits nothing, or the model cannot be checkpointed.
    """
    model = work.model
    if not isinstance(model, nn.Module):
        raise SettingError(_cannot(names, f"the model is a {type(model).__name__}, not a module"))
    if isinstance(model, nn.DataParallel):
        raise SettingError(_cannot(names, "DataParallel runs copies of the model's modules"))
    blocks: dict[str, nn.Module] = {}
    for name in names:
        found = {path: m for path, m in model.named_modules() if _fits(name, path, m)}
        if not found:
            raise SettingError(_cannot(names, f"no module is called {name!r}; {_known(model)}"))
        blocks |= found
    outer = _outermost(blocks)
    for path, block in outer.items():
        if isinstance(block, torch.jit.ScriptModule):
            raise SettingError(_cannot(names, f"{path or 'the model'} is a scripted module"))
    for block in {id(block): block for block in outer.values()}.values():
        put_forward(work, block, _checkpointed, undo)
    inner = len(blocks) - len(outer)
    return f"{inner} of the chosen blocks lie inside others and are part of them" if inner else None


def _checkpointed(block: nn.Module, forward: Forward) -> Forward:
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        # A compiler plans by itself what is computed again, and lets buffers move once.
        moving = [] if torch.compiler.is_compiling() else list(_moving(block))
        again: dict[str, Any] = {"context_fn": partial(_contexts, moving)} if moving else {}
        return checkpoint(forward, *args, use_reentrant=False, **again, **kwargs)

    return checkpointed


def _moving(block: nn.Module) -> Iterator[Tensor]:
    """Buffers that a forward pass may move on, such as the statistics of batch norm."""
    for module in block.modules():
        if module.training:
            passing = module._non_persistent_buffers_set
            for name, buffer in module._buffers.items():
                if buffer is not None and name not in passing:
                    yield buffer


def _contexts(
    moving: list[Tensor],
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """What surrounds the first pass, and the one in backward, which must start as the first."""
    return nullcontext(), _AsBefore(moving, [buffer.detach().clone() for buffer in moving])


class _AsBefore(AbstractContextManager[None]):
    """A block in which buffers have the values of before, and after which those of now."""

    def __init__(self, buffers: list[Tensor], before: list[Tensor]) -> None:
        self._buffers = buffers
        self._before = before
        self._now: list[Tensor] = []

    def __enter__(self) -> None:
        self._now = [buffer.detach().clone() for buffer in self._buffers]
        _write(self._buffers, self._before)

    def __exit__(self, *error: Any) -> None:
        _write(self._buffers, self._now)
        self._now = []


def _write(buffers: list[Tensor], values: list[Tensor]) -> None:
    # Their count of changes stays: backward of batch norm holds them, and does not use them.
    with torch.no_grad(), _unsafe_preserve_version_counter(tuple(buffers)):
        for buffer, value in zip(buffers, values, strict=True):
            buffer.copy_(value)


def _fits(name: str, path: str, module: nn.Module) -> bool:
    kinds = {kind.__name__ for kind in type(module).__mro__ if kind not in (nn.Module, object)}
    inside = path.removeprefix("module.").removeprefix("_orig_mod.")
    return name in {path, inside} or name in kinds


def _outermost(blocks: dict[str, nn.Module]) -> dict[str, nn.Module]:
    def inside_another(path: str) -> bool:
        return any(
            other != path and (other == "" or path.startswith(f"{other}.")) for other in blocks
        )

    return {path: block for path, block in blocks.items() if not inside_another(path)}


def _known(model: nn.Module) -> str:
    kinds: dict[str, int] = {}
    for _, module in model.named_modules():
        kinds[type(module).__name__] = kinds.get(type(module).__name__, 0) + 1
    named = [f"{name} × {count}" for name, count in kinds.items()][:_MOST_CANDIDATES]
    paths = [path for path, _ in model.named_modules() if path][:_MOST_CANDIDATES]
    return f"module types are {', '.join(named)}; names begin {', '.join(paths) or 'nowhere'}"


def _cannot(names: Sequence[str], why: str) -> str:
    return f"checkpointing={tuple(names)} cannot act: {why}."
