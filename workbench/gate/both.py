"""Measure two revisions on this machine, in turns, and judge the second against the first."""

import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.errors import GateError
from workbench.gate.budget import Budget, budget_of, read_budget
from workbench.gate.gate import Gate, gate_sides, renamed
from workbench.gate.measured import side_of
from workbench.gate.sample import Sample, Side
from workbench.gate.talking import Talk
from workbench.gate.worktrees import Worktrees, worktrees

BLOCKS = 10
STEPS = 20
SHORT = 10
"""Digits of a commit that people read."""
Say = Callable[[str], Any] | None
Answer = dict[str, Any]


def measure_both(
    base: str,
    head: str,
    *,
    workload: str,
    budget: "str | Path | Mapping[str, Any] | Budget | None" = None,
    counters_only: bool = False,
    steps: int = STEPS,
    blocks: int = BLOCKS,
    time_limit_s: float = 1800,
    say: Say = None,
) -> Gate:
    """Check two revisions out, measure their workloads in turns in one environment, and judge.

    Blocks take turns, A B B A and so on, so that whatever the machine does meets both alike; waits
    for processors that other programs held are left out of steps on the CPU. Everything that was
    checked out or started is gone afterwards, also after errors and interrupts.

    Args:
        base: A branch, tag or commit.
        head: The one that is judged.
        workload: ``module:function`` in both revisions, giving a :class:`workbench.Workload`.
        budget: See :func:`workbench.gate.gate`.
        counters_only: Judge only counts.
        steps: Steps of a block.
        blocks: Blocks of each revision.
        time_limit_s: Seconds for everything.
        say: Is told what goes on.

    Raises:
        GateError: A revision is not there, cannot be measured, or took too long.
    """
    if not all(workload.partition(":")):
        raise GateError(f"{workload!r} names no function: write MODULE:FUNCTION.")
    if steps < 3 or blocks < 4:
        raise GateError("a gate needs four blocks of three steps a side at least.")
    limits = budget if isinstance(budget, Budget | None) else _read(budget)
    say = say or (lambda _: None)
    until = time.monotonic() + time_limit_s
    with _ended_by_signals(), ExitStack() as stack:
        say(f"checking out {base} and {head}")
        trees = stack.enter_context(worktrees(base, head))
        kept = stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-gate-runs-"))
        talks = [
            stack.enter_context(Talk(top, at, name=name, until=until))
            for top, at, name in zip(trees.tops, trees.folders, (base, head), strict=True)
        ]
        found, warm = _in_turns(talks, workload, steps=steps, blocks=blocks, say=say)
        sides = _profiled(talks, found, warm, Path(kept), say)
    judged = gate_sides({"": sides[0]}, {"": sides[1]}, budget=limits, counters_only=counters_only)
    names = [f"{name} ({c[:SHORT]})" for name, c in zip((base, head), trees.commits, strict=True)]
    return renamed(judged, base=names[0], head=names[1], notes=_notes(trees))


def _read(budget: "str | Path | Mapping[str, Any]") -> Budget:
    return budget_of(budget) if isinstance(budget, Mapping) else read_budget(budget)


def _notes(trees: Worktrees) -> tuple[str, ...]:
    same = trees.commits[0] == trees.commits[1]
    return (*trees.notes, *(("both are the same commit",) if same else ()))


def _in_turns(
    talks: list[Talk], workload: str, *, steps: int, blocks: int, say: Callable[[str], Any]
) -> tuple[list[list[Answer]], list[Answer]]:
    """The blocks of both, and what warming up told."""
    found: list[list[Answer]] = [[], []]
    warm = []
    for talk in talks:
        say(f"{talk.name}: warming up")
        talk.ask("load", workload=workload)
        warm.append(talk.ask("warm_up"))
    for number in range(blocks):
        say(f"block {number + 1} of {blocks}")
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            found[which].append(talks[which].ask("block", position=number, steps=steps))
    return found, warm


def _profiled(
    talks: list[Talk],
    found: list[list[Answer]],
    warm: list[Answer],
    kept: Path,
    say: Callable[[str], Any],
) -> list[Side]:
    """Both sides whole: counts and parts from a profiled window, times from the blocks."""
    from workbench.run.source import open_run

    mark, sides = f"gate-{secrets.token_hex(4)}", []
    clean = all(block["undisturbed_ns"] for side in found for block in side)
    for which, talk in enumerate(talks):
        say(f"{talk.name}: profiling")
        run = talk.ask("profile", folder=str(kept / f"side{which}"))["run"]
        side = replace(side_of(open_run(run), name=talk.name), turns=mark)
        counted = talk.ask("count")["instructions"]
        side = _beside(side, found[which], warm[which], counted)
        sides.append(_timed(side, found[which], clean=clean))
    return sides


def _beside(side: Side, blocks: list[Answer], warm: Answer, instructions: float | None) -> Side:
    """With what is not in the profiled Run: compilation, instructions, waits of all blocks."""
    samples = dict(side.samples)
    seconds = (warm.get("compilation") or {}).get("seconds")
    if seconds:
        samples["compile_time"] = Sample(values=(float(seconds),))
    if instructions is not None:
        samples["instructions_per_step"] = Sample(values=(instructions,))
    waits = tuple(tuple(map(float, block["input_ns"])) for block in blocks if block["input_ns"])
    if waits and blocks[0]["device"].startswith("cpu"):
        steps = [ns for block in blocks for ns in block["step_ns"]]
        samples["exposed_input"] = Sample(blocks=waits, step=sum(steps) / len(steps))
    return replace(side, samples=samples)


def _timed(side: Side, blocks: list[dict[str, Any]], clean: bool) -> Side:
    """With the step times of the blocks, without others' waits where both sides know them."""
    from workbench.statistics.blocks import evened

    times = tuple(
        evened(block["undisturbed_ns" if clean else "step_ns"], max(block["workers"], 1))
        for block in blocks
    )
    counts = [n for block in blocks for n in block["samples"]]
    samples = dict(side.samples) | {"step_time": Sample(blocks=times)}
    if counts and all(counts):
        each = sum(counts) / len(counts)
        samples["throughput"] = Sample(
            blocks=tuple(tuple(each * 1e9 / ns for ns in block) for block in times)
        )
    return replace(side, samples=samples)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Being told to end runs the same cleaning up as an interrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
