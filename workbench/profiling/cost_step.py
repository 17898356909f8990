"""One more step of a profile, which is neither timed nor profiled: what its operators are asked.

It runs last, on a batch that was kept for it, and whatever it changes is put back: by the restoring
of the whole run, or by one of its own where the training is kept.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from workbench.analysis.costs.cost import Cost
from workbench.analysis.costs.formulas import cost_of_noted
from workbench.recording.cost_modules import ModulePaths
from workbench.recording.costs import MOST_CALLS, CostMode, TooLongError

if TYPE_CHECKING:
    from workbench.profiling.writing import Measured
    from workbench.workload import Workload
    from workbench.workload.training import Training

LEAST_S = 5.0
TIMES = 20
"""Own choice: so many times a step of record, or ``LEAST_S``, may the step with its notes take."""
SHARE = 0.25
"""Of the time that is left, what it may need at most."""


def record_costs(
    training: "Training",
    held: list[Any],
    measured: "Measured",
    *,
    work: "Workload | None",
    step_ns: float,
    left_s: float | None,
    serve: Callable[[list[Any]], None],
) -> None:
    """Run the step and put its calls into ``measured``; the reason where it cannot be done.

    Args:
        training: What runs.
        held: The batch that was kept; it is taken out.
        measured: Gets ``costs`` and ``cost_step``.
        work: The workload, where what the step changes must be put back here.
        step_ns: A step of record.
        left_s: What is left of the time limit.
        serve: Runs one step on the first of the batches.
    """
    wanted_s = max(LEAST_S, TIMES * step_ns / 1e9)
    why = _refusal(training, held, wanted_s, left_s)
    began = time.monotonic()
    paths = ModulePaths(training.model)
    mode = CostMode(paths, wanted_s)
    if why is None:
        why = _run(training=training, held=held, work=work, paths=paths, mode=mode, serve=serve)
    held.clear()
    why = why or (None if mode.broken is None else f"a call could not be noted ({mode.broken})")
    if why is None and mode.count >= MOST_CALLS:
        why = f"one step makes more than {MOST_CALLS} calls"
    if why is None and not mode.count:
        why = "the step called no operator that torch's dispatcher shows"
    if why is not None:
        measured.cost_step = {"reason": why}
        return
    measured.costs = [_costed(each.to_json()) for each in mode.noted.values()]
    measured.cost_step = {
        "seconds": time.monotonic() - began,
        "calls": mode.count,
        "modules": paths.paths,
        "flops": sum((each.get("flops") or 0) * each["count"] for each in measured.costs),
    }


def _refusal(
    training: "Training", held: list[Any], wanted_s: float, left_s: float | None
) -> str | None:
    effective = training.effective
    if effective.get("compile"):
        return (
            "the step is compiled: its kernels bypass torch's dispatcher, and are counted by the "
            "records of their parents in the trace"
        )
    if effective.get("cuda_graphs"):
        return "the step replays a CUDA graph, which calls no operator"
    if left_s is not None and wanted_s > SHARE * left_s:
        return "time_limit_s leaves too little time for one more step"
    if not held:
        return "no batch could be set aside for one more step: the data or the time ended before"
    return None


def _run(
    *,
    training: "Training",
    held: list[Any],
    work: "Workload | None",
    paths: ModulePaths,
    mode: CostMode,
    serve: Callable[[list[Any]], None],
) -> str | None:
    """The step; why it came to no end. Errors are the step's own, and the Run has all else."""
    import torch

    from workbench.workload.snapshot import Snapshot

    with ExitStack() as undo:
        try:
            if work is not None:
                before = Snapshot(
                    (work.model, work.loss, work.optimizer, work.scheduler, work.step), ()
                )
                undo.callback(before.restore)
            if "torch._dynamo" in sys.modules:  # functions that the step itself has compiled
                undo.enter_context(torch.compiler.set_stance("force_eager"))
            with paths, mode:
                serve(held)
            training.synchronize()
        except TooLongError:
            return "one step with notes of every call took too long"
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            told = str(error).partition(chr(10))[0][:300]
            return f"one more step for them failed: {type(error).__name__}: {told}"
    return None


def _costed(call: dict[str, Any]) -> dict[str, Any]:
    """What a call must do at least beside it, or why nobody can tell."""
    found = cost_of_noted(call)
    if isinstance(found, Cost):
        return {**call, "kind": found.kind, "flops": found.flops, "bytes": found.bytes}
    return {**call, "reason": found}
