"""What to try against a loader that is too slow, by what is known of its inside."""

from __future__ import annotations

import math
from typing import Any

from workbench.findings.finding import Facts
from workbench.findings.input_wait import Wait, freed, samples_per_step
from workbench.findings.making import (
    computes,
    made_ns,
    most_workers,
    taken_ns,
    usable_cpus,
    waits,
)
from workbench.findings.switching import batched_fetch
from workbench.units import time_text

CHEAP_SAMPLE_NS = 100_000
"""Below it a worker's transfer costs more than the fetch it saves: rows of an in-memory table at
tens of microseconds each became 3 to 4 times slower with one worker (pytorch/pytorch #10260)."""
HANDING_OVER_NS = 100_000
"""A batch that is made in less is made sooner than a worker hands it over (some 100 to 500 µs)."""
FEW_SAMPLES = 4
"""Own choice: batches of fewer samples gain little by being fetched at once."""
BUSY_SHARE = 0.5
"""Own choice: rows of a table in memory keep a processor busy at least so much of their fetch."""
MANY_TENSORS = 4
"""Own choice: a batch that takes a processor so many times its fetch to be handed over is many
tensors, which one index call would leave as many."""
HANDED_SHARE = 0.5
"""Own choice: handing over is the cause from this part of the wait on."""
READ_SHARE = 0.2
"""Own choice: with more of the fetch waiting for reads, rows do not come from memory."""

UNSEEN = (
    "Load batches ahead of time: a DataLoader with worker processes, cheaper decoding or a cache. "
    "What inside the loader is slow cannot be seen from here."
)
BATCHED = (
    "Each sample costs only microseconds: fetch whole batches with one index call "
    "(give the dataset a __getitems__ method). More workers would likely be slower."
)
WHOLE = (
    "Batches come from memory with one call already: keep the table on the device, or take larger "
    "batches. Workers would cost more than they save."
)


TINY = (
    "A batch is made in less time than a worker takes to hand one over: take larger batches (the "
    "training then differs), or keep the table on the device."
)


def row_by_row(facts: Facts, wait: Wait | None = None) -> bool:
    """Whether cheap rows in memory are fetched one call at a time.

    Args:
        facts: The facts of the rank.
        wait: The wait of a loader whose inside was not seen, whose samples it then stands for.
    """
    found = facts.loader_stages
    if found is None:
        samples = samples_per_step(facts)
        if wait is None or not samples or facts.effective.get("workers") != 0:
            return False
        return wait.per_step_ns / samples < CHEAP_SAMPLE_NS
    return _cheap(facts) and (found.samples_per_call or 1) <= 1 and not _many_tensors(facts)


def whole_batches(facts: Facts) -> bool:
    """Whether cheap rows in memory are fetched a batch at a time."""
    found = facts.loader_stages
    return found is not None and _cheap(facts) and (found.samples_per_call or 1) > 1


def _many_tensors(facts: Facts) -> bool:
    """Whether handing batches over is far more work than making them."""
    found = facts.loader_stages
    if found is None or found.serialize_cpu_ns is None or found.unpickle_cpu_ns is None:
        return False
    return found.serialize_cpu_ns + found.unpickle_cpu_ns > MANY_TENSORS * found.fetch_ns


def tiny_batches(facts: Facts) -> bool:
    """Whether a few cheap rows are a batch, which no worker brings sooner."""
    found = facts.loader_stages
    return found is not None and _from_memory(facts) and found.batch_ns < HANDING_OVER_NS


def _cheap(facts: Facts) -> bool:
    """Whether samples cost microseconds of a processor each, and a batch has several of them."""
    found = facts.loader_stages
    if found is None or not _from_memory(facts):
        return False
    return (found.samples or 0) >= FEW_SAMPLES * found.batches


def _from_memory(facts: Facts) -> bool:
    """Whether samples cost microseconds of a processor each, and nothing is read for them."""
    found = facts.loader_stages
    if found is None or found.sample_able_ns is None or not found.samples:
        return False
    return (
        found.sample_able_ns < CHEAP_SAMPLE_NS
        and found.cpu_share >= BUSY_SHARE
        and (found.read_share or 0) < READ_SHARE
        and not facts.effective.get("iterable")
    )


def needed_rate(facts: Facts) -> float | None:
    """How many times as fast the loader alone would have to be for the step not to wait.

    A loader that is fast enough by itself, and is waited for because it has its turn in the loop's
    own process or takes processors from the step, need be no faster: 1.
    """
    found = freed(facts)
    if found is None or not facts.loader_alone_batch_ns or found.replay_ns <= 0:
        return None
    return max(1.0, facts.loader_alone_batch_ns / found.replay_ns)


def needed_workers(facts: Facts, wait: Wait) -> int | None:
    """Workers that make a batch in the time of a step; ``None`` where making one was not seen."""
    stages = facts.loader_stages
    if stages is None or not stages.batches:
        return None
    found = freed(facts)
    step = found.replay_ns if found is not None else wait.step_ns - wait.per_step_ns
    # No worker takes that from the training process.
    taking = taken_ns(stages)
    step = step + taking if stages.pin_ns is None else max(step, taking)
    return math.ceil(made_ns(stages) / step) if step > 0 else None


def wanted_workers(facts: Facts, wait: Wait) -> int | None:
    """Workers to try: as many as are needed and can be of use; ``None`` for no more."""
    workers, most = facts.effective.get("workers"), most_workers(facts)
    if workers is None:
        return None
    if most is None:
        most = workers + 2
    needed = needed_workers(facts, wait)
    wanted = min(needed if needed is not None else 4, most)
    return wanted if wanted > workers else max(1, min(4, most)) if workers == 0 else None


def beyond_processors(facts: Facts, workers: int) -> str:
    """Why so many workers are of use although there are fewer processors; empty where there are."""
    usable = usable_cpus(facts)
    if usable is None or workers <= usable:
        return ""
    return (
        f" They wait more than they compute, so more than the {usable} usable "
        f"{'processor' if usable == 1 else 'processors'} help."
    )


def handed_over(facts: Facts, wait: Wait) -> float | None:
    """Time per batch in which it is unpickled, where that is most of what a step waits for.

    Every tensor of a batch comes through shared memory of its own, at some 50 to 500 µs each.
    """
    stages = facts.loader_stages
    if stages is None or not stages.batches or not stages.unpickle_ns:
        return None
    each = taken_ns(stages)
    makes = stages.batch_ns / max(facts.effective.get("workers") or 1, 1)
    return each if each > max(HANDED_SHARE * wait.per_step_ns, makes) else None


def advice(facts: Facts, wait: Wait) -> tuple[str, dict[str, Any] | None]:
    """What to try, and the setting that does it where a switch can act."""
    workers, usable = facts.effective.get("workers"), usable_cpus(facts)
    rows = _of_rows(facts, wait)
    if rows is not None or workers is None:
        return rows or (UNSEEN, None)
    wanted = wanted_workers(facts, wait)
    if workers and (each := handed_over(facts, wait)) is not None:
        return (
            f"Taking a batch over from its worker takes {time_text(each)}, more than making it: "
            "pack its tensors into few large ones, or load in the training process (workers=0).",
            {"workers": 0},
        )
    if workers == 0 and wanted is not None:
        return (
            f"Load in worker processes: try workers={wanted} and measure again."
            f"{beyond_processors(facts, wanted)}",
            {"workers": wanted},
        )
    if wanted is not None:
        return (
            f"The loader's {workers} workers cannot keep up: try workers={wanted}, "
            f"or make decoding and transforms cheaper.{beyond_processors(facts, wanted)}",
            {"workers": wanted},
        )
    return _enough(facts, workers, usable), None


def _of_rows(facts: Facts, wait: Wait) -> tuple[str, dict[str, Any] | None] | None:
    """What helps rows of a table in memory, which workers make slower."""
    if whole_batches(facts):
        return WHOLE, None
    if row_by_row(facts, wait):
        return BATCHED, batched_fetch(facts)
    if tiny_batches(facts):
        return TINY, {"workers": 0} if facts.effective.get("workers") else None
    return None


def _enough(facts: Facts, workers: int, usable: int | None) -> str:
    """What to look at where more workers are not the answer."""
    if waits(facts.loader_stages):
        return (
            f"The {workers} workers mostly wait outside the processor, for no file (network, lock, "
            "sleep), and are enough by their number: ask for many samples in one request, keep "
            "answers in a cache, and hold no lock while others wait for it."
        )
    if usable is not None and workers < usable:
        return (
            f"{workers} workers should make batches fast enough: look at what holds them up "
            "before adding more."
        )
    cheaper = (
        "make decoding and transforms cheaper, cache decoded samples, or move transforms to the "
        "device."
    )
    if computes(facts.loader_stages):
        return f"All usable processors already load data ({workers} workers): {cheaper}"
    return (
        f"There are as many workers as usable processors ({workers}), and whether they compute or "
        f"wait was not seen: look at their processor time, then {cheaper}"
    )
