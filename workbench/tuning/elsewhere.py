"""Whether a finding speaks of the loop that is measured: of another one its bound says nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.findings import Finding
from workbench.run.differs import Difference
from workbench.tuning.trial import Trial
from workbench.units import count_text, time_text

MACHINE = ("system", "torch", "cuda", "hip", "usable_cpus", "devices")
"""Of what a Run records of its machine, what a step depends on."""
UNLIKE = 2.0
"""Own choice: steps that take so many times as long are not the same steps; a busy machine makes
less of a difference."""
MOST_TOLD = 4
_NO_VALUES = ("can",)


def elsewhere(finding: Finding | None, before: Trial) -> tuple[Difference, ...]:
    """In what the loop of a finding differs from the one that it is measured on.

    Args:
        finding: What is verified; one that was made by hand speaks of this loop.
        before: The loop as it was measured now, without the finding's setting.
    """
    if finding is None or finding.origin is None or not before.ok:
        return ()
    origin = finding.origin
    if not origin.effective:
        return (Difference(where="loop", name="loop", first="not recorded", second=None),)
    now = _environment()
    machine = {name: now.get(name) for name in MACHINE if name in origin.environment}
    return (
        *_differ("in force", origin.effective, before.effective),
        *_differ("machine", {name: origin.environment[name] for name in machine}, machine),
        *_pace((origin.median_step_ns, origin.mean_step_ns), before.step_ns),
    )


def elsewhere_text(finding: Finding, found: tuple[Difference, ...]) -> str:
    """Says that a bound belongs to another loop, and in what that one differs."""
    origin = finding.origin
    assert origin is not None
    if not origin.effective:
        return (
            f"{finding.code} was found in a trace ({origin.run}) whose loop is not recorded: "
            "whether its bound belongs to this one cannot be told, and it is not held against it."
        )
    told = ", ".join(_said(each) for each in found[:MOST_TOLD])
    more = len(found) - MOST_TOLD
    return (
        f"{finding.code} was found in another loop (Run {origin.run}: {told}"
        f"{f' and {count_text(more)} more' if more > 0 else ''}): its bound belongs there, and is "
        "not held against this gain. Profile this loop for a bound of its own."
    )


def _said(each: Difference) -> str:
    def value(one: Any) -> str:
        if each.name == "step time" and isinstance(one, int | float):
            return time_text(one)
        return "none" if one is None else str(one)

    return f"{each.name} {value(each.first)}, here {value(each.second)}"


def _environment() -> Mapping[str, Any]:
    from workbench.recording.environment import environment

    return environment()


def _differ(where: str, first: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Values of names that both sides know."""
    for name in first:
        if name in now and name not in _NO_VALUES and _plain(first[name]) != _plain(now[name]):
            yield Difference(where=where, name=name, first=first[name], second=now[name])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _pace(paces: tuple[float | None, float | None], now: float | None) -> Iterator[Difference]:
    """A step that is unlike both the median and the mean of that Run."""
    known = [ns for ns in paces if ns]
    if now and known and (now > UNLIKE * max(known) or now < min(known) / UNLIKE):
        yield Difference(where="loop", name="step time", first=known[0], second=now)
