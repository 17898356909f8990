"""What the model could take and what the loader brings, in a sentence."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from workbench.units import significant, time_text

if TYPE_CHECKING:
    from workbench.store.record import RunRecord

ALIKE = 0.1
"""Own choice: rates that differ by less are not told apart."""
FAR = 20
"""A loader so many times as fast as the step is not worth a number."""


def ceilings(record: RunRecord | None) -> str | None:
    """The two rates and what they mean together; ``None`` where they were not measured.

    Samples a second where a batch's samples are known, else batches a second.
    """
    timings = None if record is None else record.timings
    alone = None if record is None else record.loader_alone
    if record is None or timings is None or not timings.replay_ns or alone is None:
        return None
    step_ns = statistics.median(timings.replay_ns)
    batch_ns = 1e9 / alone["batches_per_s"]
    if step_ns <= 0:
        return None
    samples, unit = record.samples_per_step, "samples/s"
    if samples is None:
        samples, unit = 1.0, "batches/s"
    model = samples / step_ns * 1e9
    loader = alone["samples_per_s"] if unit == "samples/s" else alone["batches_per_s"]
    if loader is None:
        loader = alone["batches_per_s"] * samples
    said = (
        f"Without the profiler, the model can take {significant(model)} {unit} (a step on batches "
        f"at hand takes {time_text(step_ns)}, median of {len(timings.replay_ns)}); the loader "
        f"alone brings {significant(loader)} ({time_text(batch_ns)} a batch)."
    )
    return f"{said} {_together(step_ns, batch_ns, inside=record.effective.get('workers') == 0)}"


def _together(step_ns: float, batch_ns: float, *, inside: bool) -> str:
    """What both rates mean for the step."""
    ratio = batch_ns / step_ns
    if ratio * FAR < 1:
        return "The loader is no limit."
    if inside:
        return (
            "They take turns in one process, so a step takes both: side by side it takes at least "
            f"{time_text(max(step_ns, batch_ns))}."
        )
    if ratio > 1 + ALIKE:
        return f"The loader is the limit: it would have to be {significant(ratio)} times as fast."
    if ratio < 1 - ALIKE:
        return "Once it runs, the loader keeps up."
    return "Once it runs, the loader keeps up, but only just."
