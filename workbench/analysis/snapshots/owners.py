"""Who holds an allocation of a snapshot, by the stack that asked for it and the one that gave it.

Stacks hold Python lines (innermost first), C++ frames, or both. The autograd engine works on a
thread of its own without Python lines: with C++ frames it is named there, without them its
allocations have no stack at all and stay unknown.
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.memory.allocations import AFTER
from workbench.analysis.memory.owners import CATEGORIES, OURS, UNKNOWN, Owners
from workbench.analysis.memory.recorded import Recorded
from workbench.analysis.snapshots.history import given_rows
from workbench.analysis.snapshots.snapshot import Action, Frame, Snapshot

_LIBRARY = re.compile(r"(site|dist)-packages/|/lib/python3[^/]*/|^<|torch/_|torch/nn/|/torch/")
_ENGINE = re.compile(r"torch::autograd::(Engine|generated)|autograd::Node::operator")
_ACCUMULATE = re.compile(r"AccumulateGrad")
_OPTIMIZER = re.compile(r"(^|/)torch/optim/|(^|/)optim(izer)?s?/[^/]*\.py$")
_MODULE = re.compile(r"torch/nn/modules/module\.py$")
_CALL = re.compile(r"^_?_?(wrapped_)?call_impl$|^__call__$")
_MADE = re.compile(r"^(_apply|to|cuda|load_state_dict|_load_from_state_dict|reset_parameters)$")
_OPERATOR = re.compile(r"^at::_ops::(\w+)::(call|redispatch)")
KEPT_PARTS = 2
"""Parts of a path that are shown: the file and its folder, not the user's home."""


class Asker(NamedTuple):
    """What a stack tells."""

    phase: str
    """forward, backward, optimizer, gradient (accumulated), weights, or empty."""
    line: str
    """``folder/train.py(12): step``: the innermost line that is no library's."""
    operator: str


def owners_in_snapshot(snapshot: Snapshot, recorded: Recorded, stacks: NDArray[np.int64]) -> Owners:
    """Who holds each allocation of a snapshot."""
    found = recorded.allocations
    askers = [asker(stack) for stack in snapshot.stacks]
    nobody = Asker("", "", "")
    giver = _giving_stacks(snapshot, recorded)
    texts: dict[str, int] = {"": 0}
    category = np.full(len(found), UNKNOWN, np.int8)
    line, operator = np.zeros(len(found), np.int64), np.zeros(len(found), np.int64)
    ended = found.end < AFTER
    for at, (taken, given) in enumerate(zip(stacks.tolist(), giver.tolist(), strict=True)):
        who = askers[taken] if taken >= 0 else nobody
        last = askers[given] if given >= 0 else nobody
        category[at] = CATEGORIES.index(_category(who, last, bool(ended[at])))
        line[at] = texts.setdefault(who.line, len(texts))
        operator[at] = texts.setdefault(who.operator, len(texts))
    module = np.zeros(len(found), np.int64)
    return Owners(
        category=category, module=module, operator=operator, line=line, texts=tuple(texts)
    )


def asker(stack: tuple[Frame, ...]) -> Asker:
    """What one stack tells: phase, the user's line, the operator."""
    own = next((frame for frame in stack if _is_own(frame)), None)
    called = next((m for frame in stack if (m := _OPERATOR.match(frame.name))), None)
    return Asker(
        phase=_phase(stack),
        line="" if own is None else line_text(own),
        operator="" if called is None else f"aten::{called[1]}",
    )


def line_text(frame: Frame) -> str:
    """A line as people read it, without the folders of the user's home."""
    parts = frame.file.replace("\\", "/").split("/")
    return f"{'/'.join(parts[-KEPT_PARTS:])}({frame.line}): {frame.name}"


def _is_own(frame: Frame) -> bool:
    file = frame.file.replace("\\", "/")
    return file.endswith(".py") and not _LIBRARY.search(file) and not OURS.search(file)


def _phase(stack: tuple[Frame, ...]) -> str:
    python = [(frame.file.replace("\\", "/"), frame.name) for frame in stack]
    if any(_ACCUMULATE.search(frame.name) for frame in stack):
        return "gradient"
    if any(_OPTIMIZER.search(file) for file, _ in python):
        return "optimizer"
    if any(_ENGINE.search(frame.name) for frame in stack):
        return "backward"
    in_modules = [name for file, name in python if _MODULE.search(file)]
    if any(_MADE.match(name) for name in in_modules) or any(
        name == "__init__" and "torch/nn/" in file for file, name in python
    ):
        return "weights"
    if any(_CALL.match(name) for name in in_modules):
        return "forward"
    return ""


def _category(who: Asker, last: Asker, ended: bool) -> str:
    """Of what was given back by nobody known, only what a gradient or state certainly is."""
    if who.phase == "weights":
        return "weights"
    if who.phase == "gradient":
        return "gradients"
    if who.phase == "optimizer":
        return "temporary" if ended and last.phase == "optimizer" else "optimizer"
    if who.phase == "forward":
        return "temporary" if ended and last.phase == "forward" else "activations"
    if who.phase == "backward":
        return "temporary" if ended and last.phase == "backward" else "gradients"
    return "activations" if who.line and last.phase == "backward" else "unknown"


def _giving_stacks(snapshot: Snapshot, recorded: Recorded) -> NDArray[np.int64]:
    """Per allocation the place of the stack that gave it back: of the request, where there is one.

    The request stands before its completion; the completion may be told by an event of a stream.
    """
    rows, given = given_rows(snapshot), recorded.allocations.given
    asked: dict[tuple[int, int], int] = {}
    stack_of = np.full(len(snapshot), -1, np.int64)
    columns = (snapshot.action, snapshot.device, snapshot.address, snapshot.stack)
    for row, (action, device, address, stack) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        if action == Action.FREE_REQUESTED:
            asked[device, address] = stack
        elif action == Action.FREE_COMPLETED:
            stack_of[row] = asked.pop((device, address), stack)
    if not len(rows):
        return given
    return np.where(given >= 0, stack_of[rows[np.maximum(given, 0)]], -1)
