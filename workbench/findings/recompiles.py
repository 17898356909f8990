"""WB207: torch.compile compiles again and again, or runs parts of the model uncompiled.

What: recompilations after the first, compilations inside later steps, functions that reached the
limit of variants (8) and run uncompiled from then on, and breaks that cut the graph in pieces.
Why: each compilation takes seconds, and code that fell back to eager mode gains nothing from it.
What to do: torch.compile(dynamic=True) or torch._dynamo.mark_dynamic for sizes that change, padding
to a few sizes, and no .item() or print inside the compiled function; TORCH_LOGS="recompiles,
graph_breaks" names the reasons.
When it is wrong: one recompilation per function is how torch learns that a size is dynamic; and
breaks between large pieces cost little. At the limit there is no bound: nobody has measured what
compiled code would gain over code that fell back.
"""

from typing import Any

from workbench.findings.finding import Facts, Finding, Severity
from workbench.findings.switching import dynamic_shapes
from workbench.units import count_text, share_text, time_text

CODE = "WB207"

MOST_RECOMPILES_PER_GRAPH = 1
"""After a size has changed once, torch makes it dynamic: the second variant is the last."""
LEAST_STEPS_WITH = 2
"""Own choice: a single late compilation is warm-up that came late."""
_LOGS = 'TORCH_LOGS="recompiles,graph_breaks" prints the reasons.'


def recompiles(facts: Facts) -> Finding | None:
    """Fires on recompilations, on the recompile limit, and on breaks of the graph."""
    told = facts.compilation or {}
    if _count(told, "limit_reached"):
        return _limit(facts, told)
    again = _count(told, "recompiles")
    first = max(_count(told, "graphs") - again, 1)
    late = facts.compilations
    if again > MOST_RECOMPILES_PER_GRAPH * first or (
        late is not None and late.steps_with >= LEAST_STEPS_WITH
    ):
        return _again(facts, told)
    if _count(told, "graph_breaks"):
        return _breaks(facts, told)
    return None


def _count(told: Any, name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else 0


def _functions(told: Any, *, limit: bool = False) -> list[dict[str, Any]]:
    """Functions that were compiled again, as the record names them."""
    found = told.get("functions")
    known = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    known = [each for each in known if {"function", "compilations", "last_reason"} <= set(each)]
    return [each for each in known if each.get("limit_reached")] if limit else known


def _guard(named: list[dict[str, Any]]) -> str:
    """The last guard that failed, and whose it is."""
    if not named:
        return ""
    return f" The last guard that failed in {named[0]['function']}: {named[0]['last_reason']}."


def _limit(facts: Facts, told: Any) -> Finding:
    count, named = _count(told, "limit_reached"), _functions(told, limit=True)
    run = "runs" if count == 1 else "run"
    who = "1 function was" if count == 1 else f"{count_text(count)} functions were"
    if count == 1 and len(named) == 1:
        who = f"{named[0]['function']} was compiled {named[0]['compilations']} times,"
    else:
        who += " compiled too often,"
    steps = [at for each in named if isinstance(at := each.get("limit_step"), int)]
    when = f" in step {min(steps)}" if steps else ""
    return _finding(
        facts,
        told,
        title=f"Recompile limit reached{when}: {who} and from then on {run} uncompiled, without "
        f"another word from torch.{_guard(named)}",
        severity="critical",
        advice="Let changing sizes be dynamic: torch.compile(model, dynamic=True) or "
        f"torch._dynamo.mark_dynamic, or pad inputs to a few sizes. {_LOGS}",
        setting=dynamic_shapes(facts),
        bounded=False,
    )


def _again(facts: Facts, told: Any) -> Finding:
    late = facts.compilations
    if late is not None and late.steps_with:
        said = f"in {late.steps_with} of {late.steps} steps after the first one"
        severity: Severity = "warning"
    else:
        said = f"{count_text(_count(told, 'recompiles'))} times again after the first time"
        severity = "warning"
    return _finding(
        facts,
        told,
        title=f"torch.compile compiles {said}: something that it took for fixed keeps changing."
        f"{_guard(_functions(told))}",
        severity=severity,
        advice="Let changing sizes be dynamic: torch.compile(model, dynamic=True) or "
        f"torch._dynamo.mark_dynamic, or pad inputs to a few sizes. {_LOGS}",
        setting=dynamic_shapes(facts),
    )


def _breaks(facts: Facts, told: Any) -> Finding:
    breaks, graphs = _count(told, "graph_breaks"), _count(told, "graphs")
    return _finding(
        facts,
        told,
        title=f"torch.compile breaks the graph {count_text(breaks)} "
        f"{'time' if breaks == 1 else 'times'}: {count_text(graphs)} pieces run with plain Python "
        "between them.",
        severity="info",
        advice="Move .item(), print and other Python out of the compiled function; "
        f"torch.compile(fullgraph=True) names the first break. {_LOGS}",
    )


def _finding(
    facts: Facts,
    told: Any,
    *,
    title: str,
    severity: Severity,
    advice: str,
    setting: dict[str, Any] | None = None,
    bounded: bool = True,
) -> Finding:
    """The finding; ``bounded``: time to compile is all that its end could save."""
    late = facts.compilations
    share = saving = speedup = None
    if late is not None and late.ns and facts.trace_window_ns and facts.trace_steps:
        share = min(1.0, late.ns / facts.trace_window_ns)
        step = facts.trace_window_ns / facts.trace_steps
        if bounded:  # what compiled code gains over code that fell back, nobody has measured
            saving = min(late.ns / late.steps, step)
            speedup = step / (step - saving) if saving < step else None
        title += f" It takes {share_text(share)} of the window ({time_text(late.ns)})."
    evidence = {name: told.get(name) for name in _COUNTERS} if told else {}
    if functions := _functions(told):
        evidence["functions"] = functions
    if late is not None:
        evidence |= {"steps_with_compilation": late.steps_with, "compile_us": late.ns / 1000}
    return Finding(
        code=CODE,
        title=title,
        verdict="yes",
        severity=severity,
        evidence=evidence,
        advice=advice,
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=speedup,
        setting=setting,
        rank=facts.rank,
    )


_COUNTERS = ("graphs", "graph_breaks", "recompiles", "limit_reached", "seconds")
