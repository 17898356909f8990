"""Where a model is cut into stages: by name, or where the measured times balance."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from workbench.errors import SettingError

_TIMES = 3
_HOLDERS = (nn.ModuleList, nn.Sequential)


def pieces_of(model: nn.Module) -> dict[str, nn.Module]:
    """The modules before which a model may be cut, by name: children, and members of lists."""
    found: dict[str, nn.Module] = {}
    for name, child in model.named_children():
        if isinstance(child, _HOLDERS):
            found |= {f"{name}.{inner}": m for inner, m in child.named_children()}
        else:
            found[name] = child
    return found


def balanced(times: Sequence[float], parts: int) -> list[int]:
    """Where to begin the second, third … part, so that the longest part is as short as can be.

    Times 3, 1, 1, 3 in two parts begin the second at 2: both take 4.
    """
    count = len(times)
    if count < parts:
        raise ValueError(f"{count} pieces do not make {parts} parts")
    sums = [0.0]
    for value in times:
        sums.append(sums[-1] + value)
    best: list[list[tuple[float, list[int]]]] = [
        [(sums[end], []) for end in range(count + 1)],
    ]
    for part in range(1, parts):
        row = [(float("inf"), list[int]())] * (count + 1)
        for end in range(part + 1, count + 1):
            row[end] = min(
                (max(best[-1][cut][0], sums[end] - sums[cut]), [*best[-1][cut][1], cut])
                for cut in range(part, end)
            )
        best.append(row)
    return best[-1][count][1]


def choose_cuts(
    model: nn.Module, run: Callable[[], Any], parts: int, agree: Callable[[Any], Any]
) -> list[str]:
    """Names with which the stages after the first begin, by the forward times of rank 0.

    Args:
        model: What is cut.
        run: One forward pass.
        parts: How many stages.
        agree: Makes rank 0's answer that of all.

    Raises:
        SettingError: When the model has too few parts.
    """
    pieces = pieces_of(model)
    order, times = _measured(pieces, run)
    if len(order) < parts:
        raise SettingError(
            f"parallel='pp' cannot act: the model runs {len(order)} parts of its own one after the "
            f"other ({', '.join(order) or 'none'}), too few for {parts} stages. Use fewer ranks, "
            "or name the cuts: Parallel(mode='pp', split=(...))."
        )
    return list(agree([order[cut] for cut in balanced(times, parts)]))


def _measured(
    pieces: dict[str, nn.Module], run: Callable[[], Any]
) -> tuple[list[str], list[float]]:
    """Names in the order in which they first run, and their median times; runs several times."""
    order: list[str] = []
    times: dict[str, list[float]] = {}
    with _timed(pieces, order, times):
        for _ in range(_TIMES + 1):
            run()
    return order, [statistics.median(times[name][1:] or times[name]) for name in order]


@contextmanager
def _timed(
    pieces: dict[str, nn.Module], order: list[str], times: dict[str, list[float]]
) -> Iterator[None]:
    handles, began = [], dict[str, float]()

    def before(name: str) -> Callable[..., None]:
        def start(*_: Any) -> None:
            if name not in times:
                order.append(name)
                times[name] = []
            began[name] = time.perf_counter()

        return start

    def after(name: str) -> Callable[..., None]:
        def end(*_: Any) -> None:
            if torch.accelerator.is_available():
                torch.accelerator.synchronize()
            times[name].append(time.perf_counter() - began[name])

        return end

    for name, module in pieces.items():
        handles.append(module.register_forward_pre_hook(before(name)))
        handles.append(module.register_forward_hook(after(name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def check_cuts(model: nn.Module, names: Sequence[str], parts: int) -> None:
    """Refuse cuts that name no module, or too few of them.

    Raises:
        SettingError: Naming what there is.
    """
    if len(names) != parts - 1:
        raise SettingError(
            f"split names {len(names)} modules, and {parts} stages begin with {parts - 1} of them."
        )
    there = dict(model.named_modules())
    for name in names:
        if name not in there:
            raise SettingError(
                f"split names {name!r}, and the model has no module of that name; it can be cut "
                f"before {', '.join(list(pieces_of(model))[:8])}."
            )


def stage_of(model: nn.Module, cuts: Sequence[str], number: int, example: Any) -> nn.Module:
    """One stage of a model: a run of children of a sequence, or what torch traces between cuts.

    Raises:
        SettingError: When torch cannot trace the model.
    """
    members = list(model._modules.items())  # named_children() leaves out one that comes twice
    children = [name for name, _ in members]
    if type(model) is nn.Sequential and all(cut in children for cut in cuts):
        bounds = [0, *(children.index(cut) for cut in cuts), len(children)]
        if bounds != sorted(set(bounds)):
            raise SettingError(f"split={tuple(cuts)} is not in the order in which they run.")
        stage = nn.Sequential()
        for name, child in members[bounds[number] : bounds[number + 1]]:
            stage.add_module(name, child)
        return stage
    return _traced(model, cuts, number, example)


def _traced(model: nn.Module, cuts: Sequence[str], number: int, example: Any) -> nn.Module:
    from torch.distributed.pipelining import SplitPoint, pipeline

    try:
        pipe = pipeline(model, (example,), split_spec=dict.fromkeys(cuts, SplitPoint.BEGINNING))
        stages = int(pipe.num_stages)
        stage: nn.Module = pipe.get_stage_module(number)
    except Exception as error:
        raise SettingError(
            f"parallel='pp' cannot act: torch cannot trace {type(model).__name__} to cut it "
            f"({str(error).splitlines()[0][:300]}). Write it as an nn.Sequential, or use another "
            "mode."
        ) from error
    if stages != len(cuts) + 1:
        raise SettingError(
            f"parallel='pp' cannot act: cutting before {', '.join(cuts)} gives {stages} stages, "
            f"not {len(cuts) + 1}: name modules that run one after the other."
        )
    return stage
