"""``fsdp``: weights, gradients and optimizer state sharded over the ranks (``fully_shard``)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from workbench.errors import SettingError
from workbench.parallel.repointing import names_of, repoint
from workbench.settings import Parallel
from workbench.workload.switches.reach import training_parts
from workbench.workload.training import Plan
from workbench.workload.values import blocks

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def shard(plan: Plan, parallel: Parallel, world_size: int, notes: list[str]) -> Plan:
    """The plan with a model of which each rank holds a part.

    Raises:
        SettingError: When a module cannot be sharded; says which one and why.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = plan.work.model
    optimizers = training_parts(plan.work)[1]
    degree = parallel.shard_degree or world_size
    if world_size % degree:
        raise SettingError(
            f"shard_degree={degree} does not divide {world_size} ranks: use a divisor of it."
        )
    kind = plan.device.type
    if degree == world_size:
        mesh = init_device_mesh(kind, (world_size,))
    else:
        shape = (world_size // degree, degree)
        mesh = init_device_mesh(kind, shape, mesh_dim_names=("copies", "parts"))
    options: dict[str, Any] = {"mesh": mesh, "mp_policy": _policy(parallel)}
    if parallel.reshard_after_forward is not None:
        options["reshard_after_forward"] = parallel.reshard_after_forward
    names = names_of(model)
    units = units_of(model)
    for name, module in [*units.items(), ("the model", model)]:
        try:
            fully_shard(module, **options)
        except (ValueError, RuntimeError, NotImplementedError, AssertionError) as error:
            raise SettingError(
                f"parallel='fsdp' cannot act: {name} ({type(module).__name__}) cannot be sharded "
                f"({str(error).splitlines()[0][:300]}). Use parallel='ddp', or leave it out."
            ) from error
    notes += repoint(optimizers, names, model)
    notes.append(f"weights are sharded over {degree} ranks in {len(units) + 1} units")
    plan.control.deferral = _always if parallel.no_sync is False else _last_only
    return replace(plan, model=model)


def units_of(model: nn.Module) -> dict[str, nn.Module]:
    """The blocks that are gathered one after the other, by name; the rest is one more unit.

    They are the modules of the largest type of which there are several, else the children.
    """
    kinds = blocks(model)
    if kinds:
        (kind,) = kinds[0]
        found = {name: m for name, m in model.named_modules() if type(m).__name__ == kind and name}
        return {
            name: m
            for name, m in found.items()
            if not any(name.startswith(f"{other}.") for other in found)
        }
    holders = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
    return {
        name: m
        for name, m in model.named_children()
        if not isinstance(m, holders) and any(True for _ in m.parameters())
    }


def _policy(parallel: Parallel) -> Any:
    from torch.distributed.fsdp import MixedPrecisionPolicy

    def dtype(name: str | None) -> torch.dtype | None:
        return None if name is None else _DTYPES[name]

    return MixedPrecisionPolicy(
        param_dtype=dtype(parallel.param_dtype),
        reduce_dtype=dtype(parallel.reduce_dtype),
        output_dtype=dtype(parallel.output_dtype),
    )


def _last_only(model: Any, last: bool) -> AbstractContextManager[None]:
    return _synchronizing(model, on=last)


def _always(model: Any, last: bool) -> AbstractContextManager[None]:
    return _synchronizing(model, on=True)


@contextmanager
def _synchronizing(model: Any, *, on: bool) -> Iterator[None]:
    change = getattr(model, "set_requires_gradient_sync", None)
    if change is not None:
        change(on)
    yield
