"""``tp``: single layers divided among the ranks, each of which sees the whole batch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from workbench.errors import SettingError
from workbench.parallel.repointing import Where, names_of, repoint
from workbench.parallel.tensor_plan import asked_plan, divided_attention, find_plan, heads_of
from workbench.settings import Parallel
from workbench.workload.objective import infer
from workbench.workload.placement import tensors_of
from workbench.workload.switches.reach import training_parts
from workbench.workload.training import Plan, usual_run

_TOLERANCE = 1e-3
"""Own choice: sums in another order differ by 1e-6 of fp32 numbers; a wrong division by all."""


def divide(plan: Plan, parallel: Parallel, world_size: int, notes: list[str]) -> Plan:
    """The plan whose model is divided before its first step, on whose batch that is checked."""
    model = plan.work.model
    styles = (
        find_plan(model, world_size)
        if parallel.plan is None
        else asked_plan(model, parallel.plan, world_size)
    )
    notes.append(f"{len(styles)} layers are divided over {world_size} ranks: " + _short(styles))
    usual, begun = usual_run(plan), list[bool]()

    def run(plan: Plan, batch: Any) -> Any:
        if not begun:
            begun.append(True)
            _begin(plan, styles, world_size, batch)
        return usual(plan, batch)

    return replace(plan, run=run)


def _begin(plan: Plan, styles: dict[str, str], size: int, batch: Any) -> None:
    """Divide the model; its outputs stay those of the whole one.

    Raises:
        SettingError: When they do not; names the module that does not bear it.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    model, optimizers = plan.work.model, training_parts(plan.work)[1]
    placed = plan.control.to_device(batch)
    expected = _outputs(model, placed)
    names = names_of(model)
    for module in divided_attention(model, styles):
        for name, count in heads_of(module).items():
            setattr(module, name, count // size)
    kinds: dict[str, Any] = {"colwise": ColwiseParallel, "rowwise": RowwiseParallel}
    mesh = init_device_mesh(plan.device.type, (size,))
    parallelize_module(model, mesh, {name: kinds[style]() for name, style in styles.items()})
    repoint(optimizers, names, model)
    where = Where(model)
    try:
        with where.watched():
            found = _outputs(model, placed)
    except Exception as error:
        raise SettingError(
            f"parallel='tp' cannot act: {where.name} does not bear layers that are divided "
            f"({str(error).splitlines()[0][:300]}). Divide others: "
            "Parallel(mode='tp', plan=...)."
        ) from error
    _check_same(expected, found, styles)


def _check_same(expected: list[Tensor], found: list[Tensor], styles: Mapping[str, str]) -> None:
    for one, other in zip(expected, found, strict=True):
        scale = float(one.abs().max()) if one.numel() else 0.0
        same = one.shape == other.shape
        off = float((one - other).abs().max()) if same and one.numel() else 0.0
        if not same or off > _TOLERANCE * max(scale, 1e-6):
            raise SettingError(
                "parallel='tp' cannot act: with these layers divided the model gives something "
                f"else than before ({_short(styles)}). Something between a layer divided by "
                "outputs and the next one divided by inputs mixes its features: name other pairs, "
                "Parallel(mode='tp', plan=...)."
            )


def _outputs(model: nn.Module, batch: Any) -> list[Tensor]:
    """What the model gives for a batch, with dropout off and batch norm at rest."""
    with torch.no_grad(), _at_rest(model):
        given = infer(model, batch)
    return [t.detach().float() for t in tensors_of(given) if t.is_floating_point()]


@contextmanager
def _at_rest(model: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    model.eval()
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module, mode in modes.items():
            module.training = mode


def _short(styles: Mapping[str, str]) -> str:
    shown = ", ".join(f"{name} {style}" for name, style in list(styles.items())[:6])
    return shown + (" …" if len(styles) > 6 else "")
