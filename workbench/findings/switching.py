"""Which switch answers a finding: what is possible on this loop, and not in force already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.findings.finding import Facts, Finding

FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of torch that have a fused variant, on the CPU too."""
FOREACH = (*FUSED, "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "Adafactor")
"""Optimizers of torch that can go over many tensors with one operator."""
REPLAYED = 1
"""A loop whose later steps bring no new shape can be replayed as a graph; the first brings one."""
_SAME = {"default": True}
"""Two ways to write one value."""


def unless_in_force(finding: Finding, facts: Facts) -> Finding:
    """The finding without its setting, where the loop ran with all of it already."""
    setting = finding.setting
    if not setting:
        return finding if setting is None else replace(finding, setting=None)
    known = all(
        name in facts.effective and _same(facts.effective[name], value)
        for name, value in setting.items()
    )
    return replace(finding, setting=None) if known else finding


def _same(one: Any, other: Any) -> bool:
    one, other = (
        _SAME.get(value, value) if isinstance(value, str) else value for value in (one, other)
    )
    return bool(one == other)


def can(facts: Facts, field: str) -> Any:
    """What the recording says that a switch could do on this loop; ``None`` where it is silent."""
    possible = facts.effective.get("can")
    return possible.get(field) if isinstance(possible, Mapping) else None


def batched_fetch(facts: Facts) -> dict[str, Any] | None:
    """Whole batches, where the data set is known to give the same ones that way."""
    return {"batched_fetch": True} if can(facts, "batched_fetch") else None


def batched_optimizer(facts: Facts, kind: str) -> dict[str, Any] | None:
    """One kernel for all parameters, else a few.

    Args:
        facts: The facts of the rank; of a loop without a record the name alone tells.
        kind: Class of the optimizer that was seen.
    """
    known = can(facts, "optimizer")
    if known is None:
        known = [name for name, have in (("fused", FUSED), ("foreach", FOREACH)) if kind in have]
    return {"optimizer": known[0]} if known else None


def fewer_launches(facts: Facts) -> dict[str, Any] | None:
    """Compile; where that is done, or impossible, replay graphs if every step has the same shapes.

    ``None`` where nobody knows whether the model is compiled, or its owner compiled it.
    """
    compiled = facts.effective.get("compile")
    if compiled is None or (not compiled and facts.runs_compiled):
        return None
    possible = can(facts, "compile") is not False
    if not compiled and possible:
        return {"compile": True}
    shapes = facts.shapes_seen
    fixed = shapes is not None and shapes.new_steps <= REPLAYED
    if not fixed or not str(facts.effective.get("device", "")).startswith("cuda"):
        return None
    if compiled and possible and compiled in (True, "default"):
        return {"compile": "reduce-overhead"}
    return None if compiled else {"cuda_graphs": True}


def dynamic_shapes(facts: Facts) -> dict[str, Any] | None:
    """Compile for sizes that change, where the model was compiled by a switch."""
    mode = facts.effective.get("compile")
    if not mode or not can(facts, "compile"):
        return None
    return {"compile": mode, "compile_dynamic": True}


def no_search(facts: Facts) -> dict[str, Any] | None:
    """No search for the fastest convolution, where it is on; else code for sizes that change."""
    if facts.effective.get("cudnn_benchmark"):
        return {"cudnn_benchmark": False}
    return dynamic_shapes(facts)


def pinned(facts: Facts) -> dict[str, Any] | None:
    """Pinned memory and copies that do not block, where no loader is known that pins already."""
    if facts.effective and facts.effective.get("pin_memory") is not False:
        return None
    return {"pin_memory": True, "non_blocking": True}
