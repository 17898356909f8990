"""WB103: loading waits for storage, or its cache was cold.

What: of the time that loading takes, the part in which reads wait and the processor rests; and how
much longer the batches of the first epoch took than those of later ones.
Why: what is not in the page cache comes at the speed of the disk or the network, however many
processors there are.
What to do: keep the data on a local disk or in memory, read fewer and larger files (shards), let
more workers wait at the same time; after a cold first epoch, measure a later one.
When it is wrong: a data set that fits into memory is slow once and never again; reads through
memory maps or in a library's own threads are not seen as reads.
"""

from typing import Any

from workbench.analysis.loader_evidence import EpochStart
from workbench.findings.finding import Facts, Finding
from workbench.findings.input_wait import Stalled, stalled
from workbench.findings.loader_advice import usable_cpus
from workbench.units import bytes_text, share_text, significant, time_text

CODE = "WB103"

RESTING_SHARE = 0.5
"""Own choice for "CPU time is far below wall time"."""
COLD_RATIO = 1.5
"""As the design's list of findings has it: first epoch over later ones."""
COLD_BYTES = 2.0
"""Own choice: a cold epoch also takes so many times as much from storage, by batch."""


def slow_storage(facts: Facts) -> Finding | None:
    """Fires when reads are most of what loading does, or only the first epoch was slow for them."""
    cold = _cold(facts.epoch_starts)
    found, stages = stalled(facts), facts.loader_stages
    if found is None or stages is None:
        return None if cold is None else _cold_finding(facts, *cold)
    if not found.leads("storage") or stages.cpu_share > RESTING_SHARE:
        return None if cold is None else _cold_finding(facts, *cold)
    return _finding(facts, found, cold)


def _cold(epochs: tuple[EpochStart, ...]) -> tuple[float, float, float] | None:
    """Fetch of a batch in the first and in later epochs, and what the first took from storage."""
    later = [e.batch_fetch_ns for e in epochs[1:] if e.batch_fetch_ns]
    if not later or not epochs[0].batch_fetch_ns:
        return None
    first, warm = epochs[0].batch_fetch_ns, sum(later) / len(later)
    taken = (epochs[0].storage_bytes or 0) / epochs[0].batches
    batches = sum(epoch.batches for epoch in epochs[1:])
    again = sum(epoch.storage_bytes or 0 for epoch in epochs[1:]) / batches
    if first < COLD_RATIO * warm or taken <= 0 or taken < COLD_BYTES * again:
        return None
    return first, warm, taken


def _cold_finding(facts: Facts, first: float, warm: float, taken: float) -> Finding:
    return Finding(
        code=CODE,
        title=f"The cache was cold: a batch of the first epoch took {time_text(first)} to load and "
        f"{bytes_text(taken)} from storage, a later one {time_text(warm)}.",
        verdict="yes",
        severity="info",
        evidence={
            "first_epoch_batch_us": first / 1000,
            "later_epochs_batch_us": warm / 1000,
            "ratio": first / warm,
            "storage_bytes_per_batch": taken,
        },
        advice="Judge the loader by a later epoch; if every run starts cold, copy the data to a "
        "local disk or read it once before.",
        rank=facts.rank,
    )


def _finding(facts: Facts, found: Stalled, cold: tuple[float, float, float] | None) -> Finding:
    stages = facts.loader_stages
    assert stages is not None
    share = found.wait.share * found.share("storage")
    kinds = _kinds(facts)
    rate = stages.read_bytes / stages.fetch_ns * 1e9 if stages.read_bytes else None
    at = "" if rate is None else f" at {bytes_text(rate)}/s a worker"
    said = f" from {kinds}" if kinds else ""
    advice, setting = _advice(facts, cold)
    return Finding(
        code=CODE,
        title=f"Storage-bound: reading{said}{at} takes {share_text(share)} of each step, with the "
        f"processor at work for {share_text(stages.cpu_share)} of the loading.",
        verdict="yes",
        severity=found.severity(found.saving_ns("storage")),
        evidence={
            "read_share": stages.read_share,
            "cpu_share": stages.cpu_share,
            "read_bytes_per_batch": _each(stages.read_bytes, stages.batches),
            "storage_bytes_per_batch": _each(stages.storage_bytes, stages.batches),
            "bytes_per_s": rate,
            "storage": kinds or None,
            "first_to_later_epochs": None if cold is None else cold[0] / cold[1],
            "workers": facts.effective.get("workers"),
        },
        advice=advice,
        share_of_window=share,
        saving_ns_per_step_at_most=found.saving_ns("storage"),
        speedup_at_most=found.speedup("storage"),
        setting=setting,
        rank=facts.rank,
        device=found.wait.device,
    )


def _each(total: int | None, batches: int) -> float | None:
    return None if total is None else total / batches


def _kinds(facts: Facts) -> str:
    """The storage that was read most, in words."""
    for one in (facts.loader_system or {}).get("storage") or ():
        if one.get("type"):
            where = "a network file system" if one.get("network") else "a disk"
            where = "a spinning disk" if one.get("rotational") and not one.get("network") else where
            return (
                f"{where} ({one['type']})" if not one.get("memory") else f"memory ({one['type']})"
            )
    return ""


def _advice(
    facts: Facts, cold: tuple[float, float, float] | None
) -> tuple[str, dict[str, Any] | None]:
    if cold is not None:
        return (
            f"Later epochs load {significant(cold[0] / cold[1])} times as fast from the page "
            "cache: judge the loader by them, or read the data once before.",
            None,
        )
    workers, usable = facts.effective.get("workers"), usable_cpus(facts)
    text = "Keep the data on a local disk or in memory, or in fewer and larger files."
    if workers is not None and usable is not None and workers < usable:
        return f"{text} Reads can also wait side by side: try workers={usable}.", {
            "workers": usable
        }
    return text, None
