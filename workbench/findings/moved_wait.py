"""WB204: a wait for the device was moved, and nothing was gained.

What: two Runs whose steps take the same time, although the host waits less in one call and more in
another.
Why: where the device decides how long a step takes, the host waits for it somewhere: without the
first call, in the next one.
What to do: keep whichever version reads better; look at what the device does.
When it is wrong: a difference smaller than the noise of both measurements may still be real; more
steps, or blocks in turn, would show it.
"""

from workbench.analysis.sync_calls import SyncCalls
from workbench.findings.finding import Facts, Finding
from workbench.units import time_text

CODE = "WB204"

LEAST_SHARE = 0.05
"""Own choice: a smaller part of a step that moves is noise."""
BALANCED = 0.5
"""Own choice: at least so much of what one call waits less, another waits more."""


def moved_wait(first: Facts, second: Facts, *, verdict: str) -> Finding | None:
    """Rules a gain out where only the wait moved; silent when the steps differ, or no wait moved.

    Args:
        first: Facts of the first Run's rank.
        second: Facts of the same rank of the second Run.
        verdict: Of the comparison of their step times; only ``cannot_tell`` leaves both equal
            within the noise.
    """
    before, after = first.sync_calls, second.sync_calls
    if verdict != "cannot_tell" or before is None or after is None:
        return None
    if not before.steps or not after.steps or before.time_ns <= 0:
        return None
    was, now = _waits(before), _waits(after)
    moved = {place: now.get(place, 0.0) - was.get(place, 0.0) for place in {*was, *now}}
    shorter, longer = (f(moved, key=lambda place: moved[place], default=None) for f in (min, max))
    if shorter is None or longer is None:
        return None
    gone, come = -moved[shorter], moved[longer]
    if gone < LEAST_SHARE * before.time_ns / before.steps or come < BALANCED * gone:
        return None
    return Finding(
        code=CODE,
        title=f"The wait for the device only moved: {shorter} waits {time_text(gone)} a step less, "
        f"{longer} {time_text(come)} more, and a step takes as long as before within the noise.",
        verdict="no",
        severity="info",
        evidence={
            "less_us_per_step": gone / 1000,
            "more_us_per_step": come / 1000,
            "less_in": shorter,
            "more_in": longer,
        },
        advice="Look at what the device does meanwhile: it decides how long a step takes.",
        rank=second.rank,
    )


def _waits(calls: SyncCalls) -> dict[str, float]:
    """Nanoseconds a step that the host waits, by place."""
    waits: dict[str, float] = {}
    for site in calls.sites:
        place = site.operator or site.call
        waits[place] = waits.get(place, 0.0) + site.wait_ns / calls.steps
    return waits
