"""WB108: the batches that workers make ready may not fit into shared memory.

What: bytes of a batch × prefetch_factor × workers, against what is free in /dev/shm.
Why: workers hand tensors over through it; when it is full a worker dies of a bus error, often only
after minutes or in a later epoch. Containers get 64 MB by default.
What to do: give the container more (docker run --shm-size=8g), or use fewer workers or a smaller
prefetch_factor.
When it is wrong: batches that are not tensors go through a pipe and need none of it; the largest
batch may be much larger than the first, on which this rests.
"""

from typing import Any

from workbench.findings.finding import Facts, Finding
from workbench.units import bytes_text, share_text

CODE = "WB108"

FULL = 0.8
"""As the design's list of findings has it: need above 80 % of what is free."""
PIPED = 0.5
"""Own choice: a batch of which more goes through the pipe needs no shared memory to speak of."""


def small_shared_memory(facts: Facts) -> Finding | None:
    """Fires when the batches made ready need more than 80 % of the free shared memory."""
    workers = facts.effective.get("workers") or 0
    found = _need(facts, workers)
    if found is None or not workers or _piped(facts):
        return None
    size, need, free = found
    if need <= FULL * free:
        return None
    prefetch = facts.effective.get("prefetch_factor") or 2
    return Finding(
        code=CODE,
        title=f"Shared memory is too small: {workers} workers × {prefetch} batches of "
        f"{bytes_text(size)} need {bytes_text(need)}, and {bytes_text(free)} of /dev/shm is free "
        f"({share_text(need / max(free, 1))}): expect a bus error.",
        verdict="yes",
        severity="critical" if need > free else "warning",
        evidence={
            "batch_bytes": size,
            "need_bytes": need,
            "free_bytes": free,
            "workers": workers,
            "prefetch_factor": prefetch,
        },
        advice="Give the container more shared memory (docker run --shm-size=8g), or use fewer "
        "workers or a smaller prefetch_factor.",
        setting=_setting(size, free, workers, prefetch),
        rank=facts.rank,
    )


def _piped(facts: Facts) -> bool:
    stages = facts.loader_stages
    if stages is None or not stages.sent_bytes or not stages.batch_bytes:
        return False
    return stages.sent_bytes > PIPED * stages.batch_bytes


def _need(facts: Facts, workers: int) -> tuple[float, float, float] | None:
    """Bytes of a batch, of all that are ready at once, and free before the loader began."""
    checked = (facts.input_checks or {}).get("shared_memory")
    stages = facts.loader_stages
    typical = None if stages is None else stages.batch_bytes
    if checked is not None:
        size = max(float(checked["batch_bytes"]), typical or 0.0)
        return size, size * checked["need_bytes"] / checked["batch_bytes"], checked["free_bytes"]
    free = (facts.loader_system or {}).get("shared_memory_free_bytes")
    if typical is None or free is None:
        return None
    prefetch = facts.effective.get("prefetch_factor") or 2
    return typical, typical * (workers * prefetch + 1), float(free)


def _setting(size: float, free: float, workers: int, prefetch: int) -> dict[str, Any] | None:
    """A smaller prefetch if that is enough, else fewer workers, else none."""
    if prefetch > 1 and size * (workers + 1) <= FULL * free:
        return {"prefetch_factor": 1}
    fits = int((FULL * free / size - 1) // prefetch)
    return {"workers": fits} if 0 < fits < workers else None
