"""What a step waits for in its loader, and what it saves at most without one cause of it.

Shared by the rules about loading.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.findings.finding import Facts, Severity
from workbench.findings.input_wait import (
    LEAST_STEPS_WARNING,
    NOTE_SHARE,
    Wait,
    bound,
    costs_nothing,
    measured_wait,
    severity,
)
from workbench.findings.making import parts_of_fetch
from workbench.findings.usual_steps import usual

FAST_ENOUGH = 0.8
"""Own choice: workers that make a batch in less of the step's own time keep up with it."""
MOST = 0.5
"""Own choice: a cause must be so much of what the loader itself does."""


TIMES_USUAL = 10
"""A start counts where it takes over so many times the usual wait, as for WB104."""


CAUSES = {
    "storage": "for reads of files",
    "decode": "for decoding and transforming samples",
    "collate": "for collating batches",
    "transfer": "for batches to be taken over from their workers",
    "pin": "for batches to be pinned",
    "copy": "for copies to the device",
    "blocked": "for samples that wait outside the processor (network, lock, sleep)",
}
"""What can lead, in words that follow "waiting for data, mostly"."""


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """A wait that matters, and the shares of it that each cause has."""

    wait: Wait
    bound_ns: float
    """What a step saves at most without any of it."""
    step_ns: float
    """The step that saves it: the mean of all, or of the usual ones where those save less."""
    parts: Mapping[str, float]
    """Causes that could be told, by share; what is missing was not measured."""
    split: bool
    """Whether the wait itself was divided; otherwise these are shares of the fetch."""
    workers: int
    made: Mapping[str, float]
    """What one worker takes for a mean batch, by part; empty where it was not seen."""
    usual_share: float
    """Of a step the share of the wait, without the few steps that wait far longer."""
    starting: float = 0.0
    """Of the wait, what starting workers anew at every epoch took."""

    def severity(self, saving_ns: float) -> Severity:
        """By the share, and no higher than what ending it saves or what the usual step waits."""
        saved = saving_ns / self.wait.step_ns if self.wait.step_ns > 0 else 0.0
        return severity(min(self.wait.share, saved, self.usual_share), self.wait.steps)

    def share_of_step(self, *names: str) -> float:
        """Of a step so much is due to these, without what few steps wait far longer for."""
        return min(self.wait.share, self.usual_share) * self.share(*names)

    def share(self, *names: str) -> float:
        """Of the wait, so much is due to these."""
        return min(1.0, sum(self.parts.get(name, 0.0) for name in names))

    def leads(self, *names: str) -> bool:
        """Whether these are most of what the loader itself does, and matter to the step.

        Starts of epochs are another matter, and so is waiting for a processor, which whatever
        else runs on the machine may have taken.
        """
        own = 1.0 - self.share("oversubscription", "startup")
        share = self.share(*names)
        return share >= MOST * own and share * self.wait.share > NOTE_SHARE

    @property
    def starts_lead(self) -> bool:
        """Whether most of the wait is for workers that start anew at every epoch."""
        return self.starting >= MOST

    @property
    def leading(self) -> str | None:
        """The one part that is most of what the loader itself does."""
        return next((name for name in CAUSES if self.leads(name)), None)

    def saving_ns(self, *names: str) -> float:
        """What a step saves at most without these.

        Workers bring no batch sooner than one takes without them, divided by their number, and no
        step is shorter than with a free loader. Of what is no part of making a batch, its share.
        """
        share = self.bound_ns * self.share(*names)
        less = sum(self.made.get(name, 0.0) for name in names)
        delay = self.made.get("oversubscription", 0.0)
        if not self.made:
            return share
        # Waiting for a processor ends with the work that needs one.
        if not self.workers:  # the loop stands still for all of it, or for what nothing hides
            less += delay if less and set(names) & {"decode", "collate"} else 0.0
            return max(share, min(self.bound_ns, less)) if less else share
        kept = max(0.0, sum(self.made.values()) - less - delay)
        shortest = max(self.step_ns - self.bound_ns, kept / self.workers)
        most = max(0.0, self.step_ns - shortest)
        return min(self.bound_ns, most) if less else min(share, most)

    def speedup(self, *names: str) -> float | None:
        """How many times as fast a step is at most without these."""
        return self.speedup_of(self.saving_ns(*names))

    def speedup_of(self, saving_ns: float) -> float | None:
        """How many times as fast a step is that saves so much."""
        rest = self.step_ns - saving_ns
        return self.step_ns / rest if rest > 0 else None


def stalled(facts: Facts) -> Stalled | None:
    """The wait by cause; ``None`` where it is small, unknown, or measured to cost nothing."""
    wait = None if facts.voids("causes") else measured_wait(facts)
    if wait is None or wait.share <= NOTE_SHARE or wait.steps < LEAST_STEPS_WARNING:
        return None
    if costs_nothing(facts, wait):
        return None
    parts = _split(facts.stalls_ns, facts.stalls_other_ns)
    steady = usual(facts)[0]
    usually, most, step = measured_wait(steady), bound(facts, wait), wait.step_ns
    if usually is not None and bound(steady, usually) < most:
        most, step = bound(steady, usually), usually.step_ns
    stages = facts.loader_stages
    return Stalled(
        wait=wait,
        bound_ns=most,
        step_ns=step,
        parts=_fetched(facts, wait) if parts is None else parts,
        split=parts is not None,
        usual_share=wait.share if usually is None else usually.share,
        workers=facts.effective.get("workers") or 0,
        made={} if stages is None or not stages.fetch_ns else parts_of_fetch(stages),
        starting=starting_share(facts),
    )


def starting_share(facts: Facts) -> float:
    """Of what the timed steps waited, the part in which workers started; 0 where none stands out.

    By the waits themselves: the window in which the wait was divided holds no start, or one too
    many, by chance. The first batch's own making is no start.
    """
    starts = [epoch for epoch in facts.epoch_starts if epoch.workers]
    counted, waits = starts[1:] or starts, facts.input_ns or ()
    if not counted or sum(waits) <= 0 or facts.effective.get("persistent_workers"):
        return 0.0
    start = statistics.median(epoch.start_wait_ns for epoch in counted)
    later = [epoch.median_wait_ns for epoch in starts if epoch.median_wait_ns is not None]
    usual = statistics.median(later) if later else 0.0
    if start <= TIMES_USUAL * usual:
        return 0.0
    made = statistics.median(epoch.batch_fetch_ns or 0.0 for epoch in counted)
    lost = sum(max(0.0, wait - max(usual, made)) for wait in waits if wait >= start / 2)
    return min(1.0, lost / sum(waits))


def _split(
    stalls: Mapping[str, int | None] | None, other: Mapping[str, int] | None
) -> dict[str, float] | None:
    """Shares of the parts that were seen; what was blocked in samples is told from other."""
    known = {name: ns for name, ns in (stalls or {}).items() if ns is not None}
    if other is not None and "other" in known:
        known["blocked"] = min(other.get("blocked", 0), known["other"])
        known["other"] -= known["blocked"]
    total = sum(known.values())
    return {name: ns / total for name, ns in known.items()} if total > 0 else None


def _fetched(facts: Facts, wait: Wait) -> dict[str, float]:
    """Shares of the fetch of all batches, for want of a division of the waits themselves.

    The starts of epochs come first. Workers that make batches faster than they are taken are not
    what the loop waits for.
    """
    found, workers = facts.loader_stages, facts.effective.get("workers") or 0
    start = _start_share(facts, wait)
    if found is None or not found.fetch_ns:
        return {"startup": start} if start else {}
    taken = FAST_ENOUGH * (wait.step_ns - wait.per_step_ns)
    if workers and found.batch_ns / workers < taken:
        return {"startup": start, "other": 1 - start}
    parts = parts_of_fetch(found)
    # Where there is a processor for each worker, it is other programs that take it.
    usable = facts.environment.get("usable_cpus")
    if not (isinstance(usable, int) and workers > usable):
        parts["oversubscription"] = 0.0
    whole = sum(parts.values())
    shares = {name: ns / whole * (1 - start) for name, ns in parts.items()} if whole else {}
    return shares | {"startup": start}


def _start_share(facts: Facts, wait: Wait) -> float:
    """Of the wait, what epochs after the first one took to give their first batch."""
    later = facts.epoch_starts[1:]
    batches = sum(epoch.batches for epoch in facts.epoch_starts)
    if not later or not batches or wait.per_step_ns <= 0:
        return 0.0
    lost = sum(max(e.start_wait_ns - (e.median_wait_ns or 0.0), 0.0) for e in later if e.workers)
    return min(1.0, lost / batches / wait.per_step_ns)
