"""WB103: loading waits outside the processor: for storage, a cold cache, or something else.

What: of the time that loading takes, the part in which reads of files wait, or in which samples
wait for something that is no read (a network, a lock, sleep), and the processor rests; and how much
longer the batches of the first epoch took than those of later ones.
Why: what is not in the page cache comes at the speed of the disk or the network, however many
processors there are.
What to do: keep the data on a local disk or in memory, read fewer and larger files (shards), ask
for many samples in one request, let more workers wait at the same time; after a cold first epoch,
measure a later one.
When it is wrong: a data set that fits into memory is slow once and never again; reads through
memory maps or in a library's own threads are not seen as reads, and whether a wait that is no read
is a network, a lock or sleep nobody can see from outside.
"""

from typing import Any

from workbench.analysis.loader_evidence import EpochStart, LoaderStages
from workbench.findings.finding import Facts, Finding
from workbench.findings.loader_advice import beyond_processors, row_by_row, wanted_workers
from workbench.findings.stalled import Stalled, stalled
from workbench.units import bytes_text, share_text, significant, time_text

CODE = "WB103"

RESTING_SHARE = 0.5
"""Own choice for "CPU time is far below wall time"."""
COLD_RATIO = 1.5
"""As the design's list of findings has it: first epoch over later ones."""
COLD_REST = 0.5
"""Own choice: what a cold epoch takes longer, its threads mostly rest in; other programs that take
the processors lengthen batches as well, and a few bytes come from storage at any time."""
COLD_BYTES = 2.0
"""Own choice: a cold epoch also takes so many times as much from storage, by batch."""


def slow_storage(facts: Facts) -> Finding | None:
    """Fires when loading mostly waits outside the processor, or only the first epoch did."""
    cold = _cold(facts.epoch_starts)
    found, stages = stalled(facts), facts.loader_stages
    if found is not None and stages is not None and stages.cpu_share <= RESTING_SHARE:
        if found.leads("storage"):
            return _finding(facts, found, cold)
        if found.leads("blocked") and not row_by_row(facts):
            return _blocked(facts, found)
    return None if cold is None else _cold_finding(facts, *cold)


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
    resting = [e.batch_resting_ns for e in epochs if e.batch_fetch_ns]
    known = [ns for ns in resting if ns is not None]
    if len(known) == len(resting):
        rested = known[0] - sum(known[1:]) / len(known[1:])
        if rested < COLD_REST * (first - warm):
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
    share, saving = found.share_of_step("storage"), found.saving_ns("storage")
    kinds = _kinds(facts, stages)
    rate = stages.read_bytes / stages.fetch_ns * 1e9 if stages.read_bytes else None
    at = "" if rate is None else f" at {bytes_text(rate)}/s a worker"
    said = f" from {kinds}" if kinds else ""
    advice, setting = _advice(facts, found, cold)
    return Finding(
        code=CODE,
        title=f"Storage-bound: reading{said}{at} takes {share_text(share)} of each step, with the "
        f"processor at work for {share_text(stages.cpu_share)} of the loading.",
        verdict="yes",
        severity=found.severity(saving),
        evidence={
            **_seen(facts, stages),
            "bytes_per_s": rate,
            "storage": kinds or None,
            "first_to_later_epochs": None if cold is None else cold[0] / cold[1],
        },
        advice=advice,
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=found.speedup("storage"),
        setting=setting,
        rank=facts.rank,
        device=found.wait.device,
    )


def _blocked(facts: Facts, found: Stalled) -> Finding:
    """Samples wait, and for no file."""
    stages = facts.loader_stages
    assert stages is not None
    share, saving = found.share_of_step("blocked"), found.saving_ns("blocked")
    each = found.made.get("blocked", 0.0)
    wanted = wanted_workers(facts, found.wait)
    more = "" if wanted is None else _side_by_side(facts, wanted)
    files = "not for reads of files" if stages.read_share is not None else "for what was not seen"
    return Finding(
        code=CODE,
        title=f"Loading waits outside the processor, {files} (network, lock or sleep): "
        f"{time_text(each)} of {time_text(stages.fetch_ns / stages.batches)} a batch; it takes "
        f"{share_text(share)} of each step.",
        verdict="yes",
        severity=found.severity(saving),
        evidence={"blocked_us_per_batch": each / 1000, **_seen(facts, stages)},
        advice="No faster disk or processor ends it: ask for many samples in one request, keep "
        f"answers in a cache, and hold no lock while others wait for it.{more}",
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=found.speedup("blocked"),
        setting=None if wanted is None else {"workers": wanted},
        rank=facts.rank,
        device=found.wait.device,
    )


def _seen(facts: Facts, stages: LoaderStages) -> dict[str, Any]:
    """What tells storage, a processor and other waits apart."""
    return {
        "read_share": stages.read_share,
        "cpu_share": stages.cpu_share,
        "read_bytes_per_batch": _each(stages.read_bytes, stages.batches),
        "storage_bytes_per_batch": _each(stages.storage_bytes, stages.batches),
        "block_delay_share": (facts.loader_system or {}).get("block_delay_share"),
        "workers": facts.effective.get("workers"),
    }


def _each(total: int | None, batches: int) -> float | None:
    return None if total is None else total / batches


def _kinds(facts: Facts, stages: LoaderStages) -> str:
    """The storage that was read most, in words; a disk only where bytes came from one."""
    for one in (facts.loader_system or {}).get("storage") or ():
        if not one.get("type"):
            continue
        if one.get("network"):
            return f"a network file system ({one['type']})"
        if one.get("memory"):
            return f"memory ({one['type']})"
        if stages.storage_bytes == 0:
            return ""
        return f"a {'spinning ' if one.get('rotational') else ''}disk ({one['type']})"
    return ""


def _side_by_side(facts: Facts, wanted: int) -> str:
    return (
        f" Workers can wait side by side: try workers={wanted}.{beyond_processors(facts, wanted)}"
    )


def _advice(
    facts: Facts, found: Stalled, cold: tuple[float, float, float] | None
) -> tuple[str, dict[str, Any] | None]:
    if cold is not None:
        return (
            f"Later epochs load {significant(cold[0] / cold[1])} times as fast from the page "
            "cache: judge the loader by them, or read the data once before.",
            None,
        )
    text, wanted = _where(facts), wanted_workers(facts, found.wait)
    if wanted is None:
        return text, None
    return f"{text}{_side_by_side(facts, wanted)}", {"workers": wanted}


def _where(facts: Facts) -> str:
    """What to do about the data's place, by what was seen of it."""
    stages = facts.loader_stages
    first: dict[str, Any] = next(iter((facts.loader_system or {}).get("storage") or ()), {})
    if stages is not None and stages.storage_bytes and not first.get("network"):
        return (
            "The bytes came from a disk of this machine: keep the data in memory or on a faster "
            "disk, or in fewer and larger files."
        )
    seen = stages is not None and stages.storage_bytes == 0
    why = "No byte came from a disk of this machine, so it is far away or a pipe: " if seen else ""
    keep = "keep the data on a local disk or in memory, or in fewer and larger files."
    return f"{why}{keep}" if why else f"{keep[0].upper()}{keep[1:]}"
