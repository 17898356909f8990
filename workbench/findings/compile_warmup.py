"""WB206: torch.compile took long before the loop was steady.

What: time in which torch.compile and Triton compiled before the first step that counts, and the
first steps, which are left out of step times for it. Of two Runs, one compiled and one not, it says
from which step on compiling pays: compile time ÷ what a step saves.
Why: a loop that ends before that step is slower for being compiled.
What to do: compare a Run without torch.compile and one with it (wb.compare). Keep the compiler's
cache between processes (TORCHINDUCTOR_CACHE_DIR), compile only the repeated block of a model, and
leave torch.compile out of short runs and tests.
When it is wrong: from one Run alone nobody can tell whether it pays, and the finding says so. A
warm cache shortens the next start: a second Run of the same shapes tells what that one costs.
"""

from workbench.findings.finding import Facts, Finding
from workbench.findings.lost_time import LEAST_STEPS_WARNING
from workbench.units import count_text, time_text

CODE = "WB206"

LEAST_STEPS_LONG = 10
"""Own choice: who waits less than ten steps for the compiler need not hear of it."""
_SHORTER = (
    "Keep the compiler's cache between processes (TORCHINDUCTOR_CACHE_DIR on a disk that stays), "
    "and compile only the block that the model repeats."
)


def compile_warmup(facts: Facts) -> Finding | None:
    """Tells of a long compilation before the steady steps; whether it pays, one Run cannot tell."""
    step, compile_ns = _step_ns(facts), compile_time_ns(facts)
    if step is None or compile_ns is None or facts.voids("step_time"):
        return None
    told, first = facts.compilation or {}, facts.compilations
    if compile_ns < LEAST_STEPS_LONG * step:
        return None
    if first is not None and first.steps_with > len(first.warmup_steps):
        return None  # it never ends: WB207
    left_out = () if first is None else first.warmup_steps
    return Finding(
        code=CODE,
        title=f"torch.compile took {time_text(compile_ns)} before the loop was steady, as long as "
        f"{count_text(round(compile_ns / step))} steps; whether that pays cannot be told from "
        "this Run alone.",
        verdict="cannot_tell",
        severity="info",
        evidence={
            "compile_us": compile_ns / 1000,
            "steady_step_us": step / 1000,
            "first_steps_us": [ns / 1000 for ns in left_out],
            "graphs": told.get("graphs"),
            "break_even_step": None,
        },
        advice="Compare it with a Run without torch.compile (wb.compare): it pays from step "
        f"(compile time ÷ what a step saves) on. {_SHORTER}",
        rank=facts.rank,
    )


def compile_break_even(
    first: Facts, second: Facts, *, saved_ns: float | None, per: str
) -> Finding | None:
    """From which step, or sample, on compiling pays, where just one of two Runs compiled.

    Args:
        first: Facts of the first Run.
        second: Facts of the second.
        saved_ns: How much shorter a step, or a sample, of the second is; ``None`` where the
            comparison cannot tell.
        per: What is compared: ``step`` or ``sample``.
    """
    compiled = [compile_time_ns(facts) or 0.0 for facts in (first, second)]
    if (compiled[0] > 0) == (compiled[1] > 0):
        return None
    spent = max(compiled)
    saved = None if saved_ns is None else saved_ns if compiled[1] else -saved_ns
    pays_from = spent / saved if saved is not None and saved > 0 else None
    if saved is None:
        said = f"whether it pays cannot be told: no difference of a {per} is beyond the noise"
    elif pays_from is None:
        said = f"it never pays: a {per} takes {time_text(-saved)} longer than without it"
    else:
        said = (
            f"it pays from {per} {count_text(round(pays_from))} on, saving {time_text(saved)} each"
        )
    return Finding(
        code=CODE,
        title=f"torch.compile took {time_text(spent)} before the loop was steady; {said}.",
        verdict="cannot_tell" if saved is None else "no" if pays_from is not None else "yes",
        severity="info",
        evidence={
            "compile_us": spent / 1000,
            f"saved_us_per_{per}": None if saved is None else saved / 1000,
            f"break_even_{per}": pays_from,
        },
        advice=_SHORTER if pays_from is not None else "Leave torch.compile out, or measure longer.",
        rank=second.rank,
    )


def compile_time_ns(facts: Facts) -> float | None:
    """How long compiling took: as torch itself counted it, else as the trace shows it."""
    counted = (facts.compilation or {}).get("seconds")
    if isinstance(counted, (int, float)) and counted > 0:
        return float(counted) * 1e9
    seen = facts.compilations
    return float(seen.warmup_ns) if seen is not None and seen.warmup_ns else None


def _step_ns(facts: Facts) -> float | None:
    """A steady step of record, else under the profiler; ``None`` where too few are known."""
    times = facts.step_ns or facts.trace_step_ns or ()
    return sum(times) / len(times) if len(times) >= LEAST_STEPS_WARNING else None
