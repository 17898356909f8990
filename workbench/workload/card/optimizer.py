"""Bytes of an optimizer's state: as it is, or as its first step makes it on the meta device."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.workload.card.meta import tensors_in


def optimizer_bytes(
    optimizers: Sequence[Any], twins: Mapping[int, Any]
) -> tuple[int | None, str | None]:
    """Bytes of all optimizers together, and why they are not known.

    Args:
        optimizers: The user's; they are not touched.
        twins: The meta twin of each parameter by its id.
    """
    if not optimizers:
        return None, None
    size = 0
    for each in optimizers:
        own = each
        if not each.state:
            try:
                own = _stepped(each, twins)
            except Exception as error:  # noqa: BLE001 - an optimizer of the user's
                return None, (
                    f"state of {type(each).__name__} unknown: it does not step on the meta device "
                    f"({type(error).__name__})"
                )
        tensors = {id(t): t for state in own.state.values() for t in tensors_in(state)}
        size += sum(t.numel() * t.element_size() for t in tensors.values())
    return size, None


def _stepped(optimizer: Any, twins: Mapping[int, Any]) -> Any:
    import torch

    memo = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            made = torch.nn.Parameter(torch.empty_like(parameter, device="meta"))
            twin = twins.get(id(parameter), made)
            twin.grad = torch.empty_like(twin)
            memo[id(parameter)] = twin
    copied = copy.deepcopy(optimizer, memo)
    copied.step()
    return copied
