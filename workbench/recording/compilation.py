"""What torch.compile did, as numbers; a process that never compiles is not made to import it."""

import sys
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CompileCounters:
    """Counts since the process started."""

    graphs: int
    graph_breaks: int
    recompiles: int
    limit_reached: int
    """Functions that were compiled too often and run uncompiled from then on."""
    seconds: float

    def since(self, before: "CompileCounters") -> "CompileCounters":
        """What happened between two readings."""
        gone = {f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self)}
        return CompileCounters(**gone)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


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
    return CompileCounters(
        graphs=counters["stats"]["unique_graphs"],
        graph_breaks=sum(counters["graph_break"].values()) + sum(missed.values()) - limits,
        recompiles=_recompiles(utils),
        limit_reached=limits,
        seconds=sum(times.get("_compile.compile_inner", [])),
    )


def _recompiles(utils: Any) -> int:
    """Frames compiled again because a guard failed; torch remembers the last 64 compilations."""
    return sum(
        1
        for metrics in utils.get_compilation_metrics()
        if getattr(metrics, "recompile_reason", None)
    )
