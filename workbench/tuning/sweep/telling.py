"""A sweep in one sentence: what was chosen, and why."""

from workbench.figures.comparison import interval_text
from workbench.settings import Settings
from workbench.tuning.sweep.climb import Climb
from workbench.tuning.sweep.config import Config
from workbench.units import spread_text, time_text

GIVE_WHOLE = "give the data set a __getitems__(indices) method, which fetches them at once"


def sentence(
    climb: Climb, chosen: Config, settings: Settings, gain: tuple[float, float, float] | None
) -> str:
    """The outcome and its reason.

    Args:
        climb: All that is known.
        chosen: The way of loading.
        settings: What leads to it.
        gain: Step with the choice over the step as it is, with its interval.
    """
    if climb.ended == "keeps_up":
        return _keeps_up(climb)
    early = {
        "budget": " The budget was over before all was tried.",
        "interrupted": " It was interrupted before all was tried.",
    }.get(climb.ended, "")
    if not climb.measured and not climb.cheap_rows:
        return f"≈ Nothing was measured, so the loader stays as it is.{early}"
    if not settings.changes():
        return f"≈ The loader stays as it is: {_why_nothing(climb)}.{early}"
    if climb.allowed.duplicates:
        return (
            f"{settings}: the data set does not divide itself, so each of the "
            f"{climb.as_it_is.workers} workers reads all of it and every sample comes "
            f"{climb.as_it_is.workers} times.{early}"
        )
    took = "" if gain is None else _took(gain)
    return f"{_mark(gain)} {settings}: {took}{_why(climb, chosen)}.{early}"


def _keeps_up(climb: Climb) -> str:
    alone = climb.alones[climb.as_it_is.batched]
    step, batch = time_text(alone.step_ns), time_text(alone.batch_ns)
    if climb.as_it_is.workers:
        return (
            "≈ The loader keeps up, so there is nothing to sweep: with "
            f"{_workers(climb.as_it_is.workers)} the loop takes as long as its step alone ({step})."
        )
    if alone.batch_ns > alone.step_ns * climb.noise:
        return (
            f"≈ Nothing to sweep: batch ({batch}) and step ({step}) keep the only processors "
            "busy, so nobody could load beside the step."
        )
    return (
        f"≈ The loader keeps up, so there is nothing to sweep: a batch takes {batch}, a step "
        f"{step} without it."
    )


def _took(gain: tuple[float, float, float]) -> str:
    ratio, low, high = gain
    return f"{interval_text(ratio, low, high)} time a step; "


def _mark(gain: tuple[float, float, float] | None) -> str:
    return "▲" if gain is not None and gain[2] < 1 else "≈"


def _why(climb: Climb, chosen: Config) -> str:
    alone = climb.alone(chosen)
    if chosen.batched and not climb.as_it_is.batched and not chosen.workers:
        before = climb.alones[False]
        return (
            f"a batch is there in {time_text(alone.batch_ns)} instead of "
            f"{time_text(before.batch_ns)} when fetched at once, so workers are not needed"
        )
    if climb.cheap_rows:
        return _cheap(climb)
    if climb.reached(chosen) or climb.reached(chosen._replace(persistent=True)):
        return f"it hardly waits for its batches any more ({time_text(alone.step_ns)} without any)"
    if chosen.workers < climb.as_it_is.workers:
        return f"more workers are not faster beyond the noise ({spread_text(climb.noise)})"
    if chosen.workers >= climb.most:
        return f"more workers have no processors to compute on ({climb.machine.usable_cpus})"
    return f"nothing that was tried is faster beyond the noise ({spread_text(climb.noise)})"


def _why_nothing(climb: Climb) -> str:
    if climb.cheap_rows:
        return _cheap(climb)
    return f"nothing that was tried is faster beyond the noise ({spread_text(climb.noise)})"


def _cheap(climb: Climb) -> str:
    alone = climb.alone(climb.as_it_is)
    text = (
        f"samples cost microseconds each ({time_text(alone.batch_ns)} a batch), so workers cost "
        "more than they save"
    )
    waits = alone.batch_ns > alone.step_ns * climb.noise
    possible = climb.allowed.batched or climb.as_it_is.batched
    return f"{text}; {GIVE_WHOLE}" if waits and not possible else text


def _workers(count: int) -> str:
    return f"{count} worker" + ("" if count == 1 else "s")
