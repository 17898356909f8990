"""Forward pass and optimizer of a step of the user's own, seen by hooks while it is in force."""

from contextlib import ExitStack, suppress
from typing import Any

from torch import jit, nn

from workbench.settings import Settings
from workbench.workload import Workload
from workbench.workload.control import PhaseWatch


def watch_own_step(work: Workload, settings: Settings, watch: PhaseWatch) -> ExitStack:
    """Tell ``watch`` of the phases that can be seen from outside; closing ends that.

    A step that takes ``control`` tells by itself. Backward cannot be seen without changing the
    step; a compiled or recorded model takes no hooks.
    """
    hooks = ExitStack()
    if work.step is None or work.takes_control:
        return hooks

    def begin(phase: Any) -> Any:
        return lambda *_: watch.begin(phase)

    def end(phase: Any) -> Any:
        return lambda *_: watch.end(phase)

    for optimizer in work.optimizers:
        hooks.callback(optimizer.register_step_pre_hook(begin("optimizer")).remove)
        hooks.callback(optimizer.register_step_post_hook(end("optimizer")).remove)
    model = work.model
    plain = isinstance(model, nn.Module) and not isinstance(model, jit.ScriptModule)
    if plain and not (settings.compile or settings.cuda_graphs):
        with suppress(RuntimeError):
            hooks.callback(model.register_forward_pre_hook(begin("forward")).remove)
            hooks.callback(model.register_forward_hook(end("forward")).remove)
    return hooks
