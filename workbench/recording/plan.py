"""How many steps fit: into the time that is left, and into a trace that can still be opened."""

from dataclasses import dataclass

from workbench.errors import TimeLimitError
from workbench.units import bytes_text, time_text

TRACE_LIMIT_BYTES = 200_000_000
"""Size of an uncompressed trace above which viewers become slow or fail (own choice)."""
WINDOW_MOST = 20
"""Steps in a profiled window: more explain nothing more, and cost memory and patience."""
PROFILED_FACTOR = 2.5
"""Slow-down under the profiler to plan for (small operators, everything recorded)."""
USABLE_TIME = 0.8
"""Share of the remaining time that a plan may fill."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Steps of each measured block and of the profiled window, and what must be said about them."""

    block: int
    window: int
    notes: tuple[str, ...] = ()


def plan_steps(
    *, steps: int, step_ns: float, bytes_per_step: int, lead: int, left_s: float | None
) -> Plan:
    """Blocks of ``steps`` and a window of at most 20, shrunk to what fits.

    Args:
        steps: What the user asked for.
        step_ns: Length of a step without the profiler.
        bytes_per_step: Trace size of one profiled step.
        lead: Uncounted steps before each of the three parts.
        left_s: Seconds until the time limit; ``None`` without one.

    Raises:
        TimeLimitError: not even two steps a block fit.
    """
    window, notes = limit_window(min(steps, WINDOW_MOST), bytes_per_step)
    if left_s is None:
        return Plan(block=steps, window=window, notes=notes)
    affordable = left_s * USABLE_TIME * 1e9 / step_ns - 3 * lead
    wanted = 2 * steps + PROFILED_FACTOR * window
    if wanted <= affordable:
        return Plan(block=steps, window=window, notes=notes)
    share = affordable / wanted
    block, window = int(steps * share), max(1, int(window * share))
    if block < 2:
        raise TimeLimitError(
            f"one step takes {time_text(step_ns)}: only {max(int(affordable), 0)} more fit into "
            "time_limit_s, too few to measure anything. Raise time_limit_s, or use a smaller batch."
        )
    said = (
        f"measured {block} steps before and {block} after the profiled window instead of {steps} "
        f"each, and profiled {window}: more do not fit into time_limit_s at "
        f"{time_text(step_ns)} a step"
    )
    return Plan(block=block, window=window, notes=(*notes, said))


def limit_window(wanted: int, bytes_per_step: int) -> tuple[int, tuple[str, ...]]:
    """Steps of a window whose trace stays below the limit, and a note when that cuts it."""
    fits = max(1, TRACE_LIMIT_BYTES // max(bytes_per_step, 1))
    if fits >= wanted:
        return wanted, ()
    note = (
        f"the profiled window was cut from {wanted} steps to {fits}: at "
        f"{bytes_text(bytes_per_step)} of trace a step it would exceed "
        f"{bytes_text(TRACE_LIMIT_BYTES)}"
    )
    return fits, (note,)
