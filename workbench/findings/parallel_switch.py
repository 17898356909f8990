"""Which switch of parallelism answers a finding: how the loop runs now, with one thing changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.findings.finding import Facts

LEAST_BUCKET_MB = 1.0
"""The first bucket of DistributedDataParallel is of this size; smaller ones cost more than they
hide."""
COMPRESSED = "bf16"


def parallel_now(facts: Facts) -> dict[str, Any]:
    """How the loop is parallel, as its Run says it; empty where it is not, or nobody knows."""
    said = facts.effective.get("parallel")
    if isinstance(said, str):
        said = {"mode": said}
    if not isinstance(said, Mapping) or said.get("mode", "none") == "none":
        return {}
    return {name: value for name, value in said.items() if value is not None}


def parallel_with(facts: Facts, **changes: Any) -> dict[str, Any] | None:
    """The setting that changes this and keeps the rest; ``None`` where Settings do not run it."""
    now = parallel_now(facts)
    if not now or all(now.get(name) == value for name, value in changes.items()):
        return None
    return {"parallel": {**now, **changes}}


def hides_more(facts: Facts) -> dict[str, Any] | None:
    """Smaller buckets where only the last one is exposed, fewer bytes where most of them are."""
    now, buckets = parallel_now(facts), facts.buckets
    if now.get("mode") != "ddp" or buckets is None or buckets.exposed_ns <= 0:
        return None
    if buckets.last_exposed_ns >= buckets.exposed_ns / 2 and buckets.bytes is not None:
        smaller = round(buckets.bytes / 2**20 / 2, 1)
        if smaller >= LEAST_BUCKET_MB:
            return parallel_with(facts, bucket_mb=smaller)
    if "compression" in now:
        return None
    return parallel_with(facts, compression=COMPRESSED)
