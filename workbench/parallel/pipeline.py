"""``pp``: layers one after the other on different ranks, micro-batches flowing through them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from workbench.errors import SettingError
from workbench.parallel.rank import Rank
from workbench.parallel.repointing import names_of, repoint
from workbench.parallel.stages import check_cuts, choose_cuts, stage_of
from workbench.settings import Parallel
from workbench.workload.placement import samples_in
from workbench.workload.training import Plan, step_schedulers
from workbench.workload.workload import Workload


def check_pipeline(work: Workload) -> None:
    """Refuse a workload whose step a schedule of stages cannot run.

    Raises:
        SettingError: Saying what it would need.
    """
    if work.step is not None or work.loss is None or not work.optimizers:
        raise SettingError(
            "parallel='pp' cannot act on this workload: its schedule runs forward and backward "
            "itself, and so needs model, loss=loss(output, target) and optimizer, and no step of "
            "your own."
        )


def pipe(
    plan: Plan,
    parallel: Parallel,
    rank: Rank,
    notes: list[str],
    held: list[nn.Module] | None = None,
) -> Plan:
    """The plan whose model is cut into stages at its first batch; ``held`` gets this rank's.

    Raises:
        SettingError: When the workload or the model cannot be run so.
    """
    check_pipeline(plan.work)
    if parallel.split is not None:
        check_cuts(plan.work.model, parallel.split, rank.world_size)
    begun: list[_Flow] = []

    def run(plan: Plan, batch: Any) -> Any:
        inputs, target = _pair(plan.control.to_device(batch))
        if not begun:
            begun.append(_begin(plan, parallel, rank, inputs, notes))
            if held is not None:
                held.append(begun[0].stage)
        return begun[0].step(plan, inputs, target)

    return replace(plan, run=run)


@dataclass(frozen=True, kw_only=True)
class _Flow:
    """The schedule of one rank's stage."""

    schedule: Any
    stage: nn.Module
    first: bool
    last: bool

    def step(self, plan: Plan, inputs: Tensor, target: Tensor) -> Tensor | None:
        """One batch through all stages and one optimizer step; the last rank knows the loss."""
        work, control, losses = plan.work, plan.control, list[Tensor]()
        control.zero_grad(*work.optimizers)
        with torch.enable_grad():
            given = (inputs,) if self.first else ()
            if self.last:
                self.schedule.step(*given, target=target, losses=losses)
            else:
                self.schedule.step(*given)
            if control.optimizer_step(*work.optimizers):
                step_schedulers(work)
        return torch.stack(losses).mean() if losses else None


def _pair(batch: Any) -> tuple[Tensor, Tensor]:
    good = (
        isinstance(batch, tuple | list)
        and len(batch) == 2
        and all(isinstance(part, Tensor) for part in batch)
    )
    if not good:
        raise SettingError(
            "parallel='pp' cannot act on these batches: its schedule takes pairs of one input "
            "tensor and one target tensor."
        )
    return batch[0], batch[1]


def _begin(plan: Plan, parallel: Parallel, rank: Rank, inputs: Tensor, notes: list[str]) -> _Flow:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    model, size = plan.work.model, rank.world_size
    parts = parallel.micro_batches or size
    samples = samples_in(inputs) or 0
    if samples % parts or samples < parts:
        raise SettingError(
            f"a batch of {samples} samples does not divide into {parts} micro-batches: set "
            "Parallel(mode='pp', micro_batches=...) to a divisor of it."
        )
    if parallel.schedule != "gpipe" and parts < size:
        raise SettingError(
            f"schedule='1f1b' keeps {size} stages busy with at least {size} micro-batches, not "
            f"{parts}: raise micro_batches, or use schedule='gpipe'."
        )
    example = inputs[: samples // parts]
    cuts = list(parallel.split or choose_cuts(model, _forward(model, example), size, rank.agree))
    stage_module = stage_of(model, cuts, rank.number, example)
    names = names_of(model)
    _check_held(stage_module, names, rank)
    notes += repoint(plan.work.optimizers, names, stage_module)
    notes.append(f"{size} stages; the later ones begin with {', '.join(cuts)}")
    runs = _Inside(stage_module, plan)
    stage = PipelineStage(runs, rank.number, size, plan.device)
    kind: Any = ScheduleGPipe if parallel.schedule == "gpipe" else Schedule1F1B
    return _Flow(
        stage=stage_module,
        schedule=kind(stage, n_microbatches=parts, loss_fn=_inside(plan)),
        first=rank.number == 0,
        last=rank.number == size - 1,
    )


class _Inside(nn.Module):
    """A stage whose forward pass runs in the region of the run's precision."""

    def __init__(self, stage: nn.Module, plan: Plan) -> None:
        super().__init__()
        self.stage = stage
        self._forward_region = plan.control.forward

    def forward(self, *args: Any) -> Any:
        with self._forward_region():
            return self.stage(*args)


def _inside(plan: Plan) -> Callable[[Any, Any], Any]:
    """The loss in the region of the run's precision."""
    loss, control = plan.work.loss, plan.control

    def inside(output: Any, target: Any) -> Any:
        assert loss is not None
        with control.forward():
            return loss(output, target)

    return inside


def _check_held(stage: nn.Module, names: dict[int, str], rank: Rank) -> None:
    """Refuse weights that two stages would train each for itself, or that no optimizer knows.

    Raises:
        SettingError: Naming them.
    """
    held = [names.get(id(parameter)) for parameter in stage.parameters()]
    every = rank.gather(held)
    if any(name is None for each in every for name in each):
        raise SettingError(
            "parallel='pp' cannot act: torch made copies of weights while it cut the model, which "
            "no optimizer knows: of a weight that several stages use, for instance. Untie it, "
            "write the model as an nn.Sequential, or use another mode."
        )
    counts = Counter(name for each in every for name in set(each))
    shared = sorted(name for name, count in counts.items() if count > 1)
    if shared:
        raise SettingError(
            f"parallel='pp' cannot act: {', '.join(shared[:3])} is used by several stages, and "
            "each would train its own copy. Cut so that one stage uses it, "
            "Parallel(mode='pp', split=...), untie it, or use another mode."
        )


def _forward(model: nn.Module, example: Tensor) -> Callable[[], Any]:
    def run() -> Any:
        modes = {module: module.training for module in model.modules()}
        model.eval()  # batch norm and random states stay as they are
        try:
            with torch.no_grad():
                return model(example)
        finally:
            for module, mode in modes.items():
                module.training = mode

    return run
