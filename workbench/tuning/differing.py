"""In what two trials of one measurement differ besides the switch and their times."""

import statistics
from collections.abc import Iterator
from typing import Any

from workbench.run.differs import Difference
from workbench.tuning.samples import same_samples
from workbench.tuning.trial import FairRuns, Trial

BUSIER = 0.05
"""Share of the processors that others used more beside one side than beside the other."""
CLOCK = 0.05
"""Relative difference of clocks that is told."""
HOTTER_C = 5.0


def differing(runs: FairRuns, first: int = 0, second: int = 1) -> tuple[Difference, ...]:
    """Everything recorded in which two trials differ.

    Versions, devices and seeds are those of one process, and the same; weights, random state and
    place in the data were put back before every block. A trial without a single block, such as a
    refused one, did nothing that could be compared: only what it said is told.
    """
    a, b = runs.trials[first], runs.trials[second]
    if not a.blocks or not b.blocks:
        return tuple(_said(a, b))
    return (
        *_effective(a, b),
        *_data(a, b),
        *_counts(a, b),
        *_machine(a, b),
        *_said(a, b),
    )


def _effective(a: Trial, b: Trial) -> Iterator[Difference]:
    for name in dict.fromkeys([*a.effective, *b.effective]):
        one, other = a.effective.get(name), b.effective.get(name)
        if one != other:
            yield Difference(where="in force", name=name, first=one, second=other)


def _data(a: Trial, b: Trial) -> Iterator[Difference]:
    """Samples that are not the same, or not in the same order."""
    hashes = [block.sample_hashes for trial in (a, b) for block in trial.blocks]
    found = [same_samples(hashes[0], other) for other in hashes[1:]] if hashes else []
    if False in found:
        yield Difference(
            where="data", name="first samples", first="as they come", second="others come"
        )


def _counts(a: Trial, b: Trial) -> Iterator[Difference]:
    for name, count in (
        ("samples per step", lambda trial: trial.samples_per_step),
        ("steps that count", lambda trial: sum(len(block.step_ns) for block in trial.blocks)),
    ):
        one, other = count(a), count(b)
        if one != other:
            yield Difference(where="work", name=name, first=one, second=other)


def _machine(a: Trial, b: Trial) -> Iterator[Difference]:
    for name, least in (
        ("others_cpu_share", BUSIER),
        ("clock_mhz", None),
        ("temperature_c", HOTTER_C),
    ):
        one, other = _typical(a, name), _typical(b, name)
        if one is None or other is None:
            continue
        limit = CLOCK * max(one, other) if least is None else least
        if abs(one - other) > limit:
            yield Difference(where="machine", name=name, first=one, second=other)
    one, other = _devices(a), _devices(b)
    if one != other:
        yield Difference(where="machine", name="processes on devices", first=one, second=other)


def _said(a: Trial, b: Trial) -> Iterator[Difference]:
    for where, name in (("warnings", "warnings"), ("notes", "notes")):
        one, other = set(getattr(a, name)), set(getattr(b, name))
        for text in sorted(other - one):
            yield Difference(where=where, name="only here", first=None, second=text)
        for text in sorted(one - other):
            yield Difference(where=where, name="only here", first=text, second=None)


def _typical(trial: Trial, name: str) -> float | None:
    values = [block.conditions.get(name) for block in trial.blocks]
    known = [float(value) for value in values if value is not None]
    return round(statistics.median(known), 3) if known else None


def _devices(trial: Trial) -> Any:
    """The most processes that each device had beside any block."""
    most: dict[str, int] = {}
    for block in trial.blocks:
        for number, device in enumerate(block.conditions.get("devices") or ()):
            if device["processes"] is not None:
                key = f"{number} {device['name']}"
                most[key] = max(most.get(key, 0), device["processes"])
    return most or None
