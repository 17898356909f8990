"""How workers make batches: what one takes, whether they compute or wait, how many are of use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.findings.finding import Facts

if TYPE_CHECKING:
    from workbench.analysis.loader_evidence import LoaderStages

WAITING_SHARE = 0.5
"""Own choice: workers that use a processor for less of the time, and read no files meanwhile, wait
for something else."""
TIMES_ITS_WORK = 3
"""Own choice: what takes so many times its own processor time to hand over waits for something."""
A_PROCESSOR = 8
"""Own choice: at most so many waiting workers for each processor are tried; each takes memory."""


def usable_cpus(facts: Facts) -> int | None:
    """Processors by affinity and container quota."""
    found = (facts.loader_system or {}).get("usable_cpus") or facts.environment.get("usable_cpus")
    return found if isinstance(found, int) else None


def parts_of_fetch(stages: LoaderStages) -> dict[str, float]:
    """Of a mean batch, in nanoseconds; they sum to its fetch.

    *blocked* is neither on a processor, nor ready for one, nor in a read of a file.
    """
    samples, storage = float(stages.samples_ns), float(stages.read_wait_ns or 0)
    delay = min(float(stages.run_delay_ns or 0), max(samples - storage, 0.0))
    able = max(samples - storage - delay, 0)
    decode = min(able, max(stages.fetch_cpu_ns - stages.collate_ns, 0))
    helped = max((stages.active_threads or 1.0) - 1.0, 0.0) * stages.fetch_ns
    decode = min(able, decode + helped)
    whole = {
        "storage": storage,
        "decode": decode,
        "collate": stages.collate_ns,
        "oversubscription": delay,
        "blocked": able - decode,
    }
    return {name: ns / max(stages.batches, 1) for name, ns in whole.items()}


def made_ns(stages: LoaderStages) -> float:
    """What one worker takes for the median batch: its fetch, and the work of pickling it.

    Pickling has a thread of its own, which mostly waits for the fetch of the next batch.
    """
    pickling = stages.serialize_ns if stages.serialize_cpu_ns is None else stages.serialize_cpu_ns
    return stages.batch_ns + (pickling or 0) / max(stages.batches, 1)


def taken_ns(stages: LoaderStages) -> float:
    """What the training process itself does to take a batch over from its worker."""
    known = stages.unpickle_ns if stages.unpickle_own_ns is None else stages.unpickle_own_ns
    return (known or 0) / max(stages.batches, 1)


def handing_over_ns(stages: LoaderStages) -> float | None:
    """What handing a batch over takes at most; ``None`` where its processor time was not seen.

    Longer stretches are not the hand-over's own: on a busy machine it waits for a processor.
    """
    if stages.serialize_cpu_ns is None or stages.unpickle_cpu_ns is None:
        return None
    used = stages.serialize_cpu_ns + stages.unpickle_cpu_ns
    return TIMES_ITS_WORK * used / max(stages.batches, 1)


def processors_each(stages: LoaderStages) -> float:
    """Processors that one worker keeps busy while it makes batches."""
    return min(1.0, stages.cpu_share) + max((stages.active_threads or 1.0) - 1.0, 0.0)


def waits(stages: LoaderStages | None) -> bool:
    """Whether workers mostly wait outside the processor, and for no read of a file."""
    if stages is None or not stages.fetch_ns:
        return False
    resting = 1.0 - processors_each(stages) - (stages.read_share or 0.0)
    return resting > WAITING_SHARE


def computes(stages: LoaderStages | None) -> bool:
    """Whether workers are known to keep processors busy."""
    return stages is not None and processors_each(stages) >= WAITING_SHARE


def most_workers(facts: Facts) -> int | None:
    """How many workers can be of use: those that compute as many as processors, others more.

    ``None`` where the usable processors are not known. A spinning disk serves one read at a time.
    """
    usable, stages = usable_cpus(facts), facts.loader_stages
    if usable is None:
        return None
    if stages is None or computes(stages) or (_spins(facts.loader_system) and not waits(stages)):
        return usable
    return useful_workers(usable, processors_each(stages))


def useful_workers(usable: int, processors_each: float) -> int:
    """How many workers keep the usable processors busy, each busy for so much of one."""
    each = max(processors_each, 1.0 / A_PROCESSOR)
    return max(usable, math.floor(usable / each))


def _spins(system: Mapping[str, object] | None) -> bool:
    storage = (system or {}).get("storage")
    return isinstance(storage, list) and any(
        one.get("rotational") and not one.get("network") for one in storage[:1]
    )
