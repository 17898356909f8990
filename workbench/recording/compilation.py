"""What torch.compile did, as numbers; a process that never compiles is not made to import it."""

import re
import sys
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from workbench.recording.step_starts import StepStarts

COUNTS = ("graphs", "graph_breaks", "recompiles", "limit_reached", "seconds")
LONGEST_REASON = 200
_OF_TORCH = re.compile(r"[/\\]torch[/\\]_dynamo[/\\]")


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """One compilation of a function, or the attempt that was given up at the limit."""

    ident: tuple[str, float | None]
    """Its number, which says the function as well, and when it began."""
    function: str | None
    """Name and place; ``None`` for the attempt that was given up."""
    reason: str | None
    """The guard that failed, so that the code that was there could not be used."""

    @property
    def frame(self) -> str:
        """What all compilations of one function share."""
        return self.ident[0].partition("/")[0]


@dataclass(frozen=True, kw_only=True)
class CompileCounters:
    """Counts since the process started."""

    graphs: int
    graph_breaks: int
    recompiles: int
    limit_reached: int
    """Functions that were compiled too often and run uncompiled from then on."""
    seconds: float
    last: tuple[Compilation, ...] = ()
    """The compilations that torch remembers: 64 at most."""

    def since(self, before: "CompileCounters") -> "CompileCounters":
        """What happened between two readings."""
        gone = {name: getattr(self, name) - getattr(before, name) for name in COUNTS}
        known = {each.ident for each in before.last}
        last = tuple(each for each in self.last if each.ident not in known)
        return CompileCounters(**{**gone, "recompiles": _again(last)}, last=last)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary of the counts."""
        return {name: getattr(self, name) for name in COUNTS}

    def recompiled(self, steps: StepStarts | None = None) -> list[dict[str, Any]]:
        """Functions that were compiled again, most often first, with the last guard that failed.

        Args:
            steps: When the steps began; says in which one a function reached the limit.
        """
        frames: dict[str, list[Compilation]] = {}
        for each in self.last:
            frames.setdefault(each.frame, []).append(each)
        found = [
            {
                "function": next((e.function for e in own if e.function), None),
                "compilations": sum(1 for e in own if e.function),
                "last_reason": next(e.reason for e in reversed(own) if e.reason),
                "limit_reached": any(e.function is None for e in own),
                "limit_step": _step_of(next((e for e in own if e.function is None), None), steps),
            }
            for own in frames.values()
            if any(e.reason for e in own)
        ]
        return sorted(found, key=lambda each: -each["compilations"])


def _step_of(given_up: Compilation | None, steps: StepStarts | None) -> int | None:
    return None if given_up is None or steps is None else steps.step_at(given_up.ident[1])


_NOTHING = CompileCounters(graphs=0, graph_breaks=0, recompiles=0, limit_reached=0, seconds=0.0)
_LIMIT = ("recompile limit", "cache_size_limit")


def compile_counters() -> CompileCounters:
    """Read torch.compile's counters; all zero in a process that has not imported it."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return _NOTHING
    counters: Any = utils.counters
    missed = {str(reason): count for reason, count in counters["unimplemented"].items()}
    limits = sum(n for reason, n in missed.items() if any(word in reason for word in _LIMIT))
    times: Any = utils.compilation_time_metrics
    last = tuple(map(_compilation, utils.get_compilation_metrics()))
    return CompileCounters(
        graphs=counters["stats"]["unique_graphs"],
        graph_breaks=sum(counters["graph_break"].values()) + sum(missed.values()) - limits,
        recompiles=_again(last),
        limit_reached=limits,
        seconds=sum(times.get("_compile.compile_inner", [])),
        last=last,
    )


def _again(last: tuple[Compilation, ...]) -> int:
    """Those that a guard made necessary, without attempts that were given up."""
    return sum(1 for each in last if each.reason and each.function)


def _compilation(metrics: Any) -> Compilation:
    """What torch keeps of one compilation, without the folders of the user's files."""
    name, file = getattr(metrics, "co_name", None), getattr(metrics, "co_filename", None)
    line = getattr(metrics, "co_firstlineno", None)
    function = None
    if name is not None:
        place = f" ({PurePath(str(file)).name}:{line})" if file else ""
        function = "the model" if _OF_TORCH.search(str(file)) else f"{name}{place}"
    reason = getattr(metrics, "recompile_reason", None)
    return Compilation(
        ident=(str(getattr(metrics, "compile_id", None)), getattr(metrics, "start_time", None)),
        function=function,
        reason=None if not reason else _short(str(reason)),
    )


def _short(reason: str) -> str:
    """The first guard that failed, without the number of the code that it guards."""
    first = reason.strip().partition("\n")[0]
    return re.sub(r"^\d+/\d+: ", "", first)[:LONGEST_REASON]
