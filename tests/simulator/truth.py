"""The true cause of every nanosecond in which the device is idle, read off the script.

A gap ends when some work begins. That work was held back by the device (its spacing, or work that
nobody recorded), by the way to it, by the call that handed it over, and before that by what the
flow that made the call did instead. Where removing either of two things would close the gap, and
where the wording of docs/metrics.md differs from the mechanism, both answers are kept.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from tests.simulator.machine import GENERIC, Activity, Flow, Machine, Work


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A stretch of idle time on the host's clock, and why."""

    start: int
    end: int
    cause: str
    """What would remove it."""
    definition: str
    """What docs/metrics.md calls it, where that differs."""


def truths(machine: Machine) -> list[Truth]:
    """Every idle stretch between the first and the last recorded work, explained."""
    hidden = [work for work in machine.device.works if not work.visible]
    found = []
    for start, end, work in _gaps(machine):
        cuts = sorted({start, end, *_cuts(machine, work, start, end, hidden)})
        for a, b in pairwise(cuts):
            cause, definition = _label(machine, work, start, a, hidden)
            found.append(Truth(start=a, end=b, cause=cause, definition=definition))
    return found


def _gaps(machine: Machine) -> list[tuple[int, int, Work]]:
    """Stretches in which no recorded work runs, each with the work that ends it."""
    calls = {r.args["correlation"]: r.start for r in machine.records if r.kind == "runtime"}
    works = [work for work in machine.device.works if work.visible and not work.device]
    works.sort(key=lambda w: (w.start, not w.launched, calls[w.call]))
    found, reach = [], works[0].start
    for work in works:
        if work.start > reach:
            found.append((reach, work.start, work))
        reach = max(reach, work.end)
    return found


def _cuts(machine: Machine, work: Work, start: int, end: int, hidden: list[Work]) -> set[int]:
    """Instants at which the cause may change."""
    instants = {work.arrived}
    for flow in {work.flow, machine.main or work.flow}:
        for activity in _between(flow, start, end):
            instants |= {activity.start, activity.end}
            if activity.late:
                late = activity.late
                instants |= {late.end + late.drained - late.start, late.end + start - late.start}
    for unseen in hidden:
        instants |= {unseen.start, unseen.end}
    return {instant for instant in instants if start < instant < end}


def _between(flow: Flow, start: int, end: int) -> list[Activity]:
    first = bisect_right(flow.activities, start, key=lambda a: a.end)
    found = []
    for activity in flow.activities[first:]:
        if activity.start >= end:
            break
        found.append(activity)
    return found


def _label(machine: Machine, work: Work, gap: int, at: int, hidden: list[Work]) -> tuple[str, str]:
    if not work.launched:
        return "unknown", "unknown"
    if any(unseen.start <= at < unseen.end for unseen in hidden):
        return "unknown", "unknown"
    call_end = max((a.end for a in work.flow.activities if a.call == work.call), default=at)
    if at >= call_end or _handed(work, at):
        definition = "kernel_gap" if call_end <= gap else "launch"
        unseen = any(w.stream == work.stream and gap < w.end <= work.start for w in hidden)
        if unseen:
            return "unknown", "unknown"
        return ("launch" if at < work.arrived else "kernel_gap"), definition
    cause, definition = _activity(work.flow, work, gap, at)
    if machine.main and work.flow is not machine.main:
        # The other thread waits for the loop, which could have given the device something to do.
        cause, definition = _activity(machine.main, None, gap, at)
    return cause, definition


def _handed(work: Work, at: int) -> bool:
    """Whether the call had already handed the work over, and only returned later."""
    ours = [a for a in work.flow.activities if a.call == work.call]
    return bool(ours) and at >= ours[-1].start


def _activity(flow: Flow, work: Work | None, gap: int, at: int) -> tuple[str, str]:
    """What the flow does at an instant, and what that is called."""
    index = bisect_right(flow.activities, at, key=lambda a: a.start) - 1
    if index < 0 or flow.activities[index].end <= at:
        return "host_other", "host_other"  # before its first record or after its last
    activity = flow.activities[index]
    own = activity.call is not None and (work is None or activity.call == work.call)
    if own and activity.cause in GENERIC | {"synchronization"}:
        return "launch", "launch"
    cause, definition, late = activity.cause, activity.definition, activity.late
    if late is not None:
        if cause in GENERIC and at - late.end < late.drained - late.start:
            cause = late.cause
        held = late.start <= gap <= late.end and at - late.end < gap - late.start
        if held and not activity.spoiled:
            definition = "synchronization"
    return cause, definition
