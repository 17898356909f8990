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
"""Own choice: steps that take so many times as long are told; other data make them, and so does a
busy machine, so that this alone voids no bound."""
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
    first, now = ("none" if one is None else str(one) for one in (each.first, each.second))
    return f"{each.name} {first}, here {now}"


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


def pace_text(finding: Finding | None, before: Trial) -> str | None:
    """Says that a step is unlike both the median and the mean of the finding's Run."""
    origin, now = None if finding is None else finding.origin, before.step_ns
    if finding is None or origin is None or not now:
        return None
    known = [ns for ns in (origin.median_step_ns, origin.mean_step_ns) if ns]
    if not known or min(known) / UNLIKE <= now <= UNLIKE * max(known):
        return None
    return (
        f"A step took {time_text(known[0])} in Run {origin.run}, where {finding.code} was found, "
        f"and takes {time_text(now)} here: other data, or a machine that is busier on one side. "
        "Its bound says little then; profile this loop again."
    )
