"""Whether what a setting gained lies within what the finding that advised it allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.units import share_text, time_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from workbench.run.run import Run
    from workbench.statistics.change import Change


def bounds_held(first: Run, second: Run, change: Change) -> tuple[str, ...]:
    """A sentence for every finding of the first Run whose setting, and nothing else, was tried.

    The gain is of the mean step of record, as the bound is; its interval is that of the verdict.
    """
    if change.ratio is None or change.low is None or change.high is None:
        return ()
    record = first.record
    if record is None or record.timings is None or second.record is None:
        return ()
    tried = _tried(record.settings, second.record.settings)
    steady = record.timings.step_ns[record.timings.warmup :]
    if not tried or not steady:
        return ()
    step = sum(steady) / len(steady)
    found = [f for f in first.findings if f.setting and dict(f.setting) == tried]
    told: dict[float, dict[str, None]] = {}
    for finding in found:
        bound = finding.saving_ns_per_step_at_most
        if bound is not None:
            told.setdefault(bound, {})[finding.code] = None
    return tuple(
        _sentence(" and ".join(codes), tried, step, bound, change) for bound, codes in told.items()
    )


def _sentence(codes: str, tried: Mapping[str, Any], step: float, bound: float, c: Change) -> str:
    assert c.ratio is not None
    assert c.low is not None
    assert c.high is not None
    gain, least, most = (step * (1 - ratio) for ratio in (c.ratio, c.high, c.low))
    setting = ", ".join(f"{name}={value!r}" for name, value in tried.items())
    if most <= 0:
        verdict = "so it saves nothing here"
    elif least < 0:
        verdict = "so a gain cannot be told from chance"
    elif gain <= bound:
        verdict = "within the bound"
    elif least <= bound:
        verdict = "above the bound by no more than chance"
    else:
        verdict = "above the bound, which was too low: something else changed as well"
    return (
        f"{codes} said that {setting} saves at most {time_text(bound)} a step "
        f"({share_text(bound / step)} of its mean time); measured: {_interval(gain, least, most)}, "
        f"{verdict}."
    )


def _interval(gain: float, least: float, most: float) -> str:
    """A gain in words, since "−10 ms" may be read as either: less time, or more."""
    if least < 0 < most:
        return f"between {time_text(most)} less and {time_text(-least)} more a step"
    near, far = sorted((abs(least), abs(most)))
    said = f"{time_text(abs(gain))} ({time_text(near)} to {time_text(far)})"
    return f"{said} {'less' if gain >= 0 else 'more'} a step"


def _tried(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that only the second has, or has otherwise; empty where others were given up."""
    if any(value is not None and after.get(name) is None for name, value in before.items()):
        return {}
    return {
        name: value
        for name, value in after.items()
        if value is not None and before.get(name) != value
    }
