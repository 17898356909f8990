"""WB105: more workers than processors, or fewer than a batch needs.

What: worker processes against the processors that this process may use (affinity and container
quota), and the workers that would make a batch in the time of a step.
Why: the machine's number of cores is not what a container or a scheduler grants; workers beyond it
take turns. Fewer than needed leave the step waiting while processors are free.
What to do: set workers to what is needed, at most the usable processors; a sweep shows the curve.
When it is wrong: workers that mostly wait, for storage or the network, may well be more than
processors: where they were seen to, more are advised; otherwise their number is only noted. Rows of
a table in memory need no worker at all.
"""

from typing import Any

from workbench.findings.finding import Facts, Finding
from workbench.findings.input_wait import NOTE_SHARE, bound
from workbench.findings.loader_advice import (
    beyond_processors,
    needed_workers,
    row_by_row,
    tiny_batches,
    wanted_workers,
)
from workbench.findings.making import most_workers, usable_cpus, waits
from workbench.findings.stalled import stalled
from workbench.units import count_text, share_text, significant

CODE = "WB105"

WAITING_SHARE = 0.5
"""Own choice: workers that together use less of the processors than this mostly wait."""


def worker_count(facts: Facts) -> Finding | None:
    """Fires on more workers than usable processors, or on fewer than a step needs."""
    workers, usable = facts.effective.get("workers"), usable_cpus(facts)
    if not workers or usable is None:
        return None
    if workers > usable and not waits(facts.loader_stages):
        return _too_many(facts, workers, usable)
    return _too_few(facts, workers, usable)


def _too_many(facts: Facts, workers: int, usable: int) -> Finding:
    system = facts.loader_system or {}
    used = system.get("worker_cpus")
    waiting = used is not None and used < WAITING_SHARE * usable
    why = _limits(system)
    return Finding(
        code=CODE,
        title=f"{count_text(workers)} workers share {count_text(usable)} usable "
        f"{'processor' if usable == 1 else 'processors'}{why}.",
        verdict="yes",
        severity="info" if waiting else "warning",
        evidence={
            "workers": workers,
            "usable_cpus": usable,
            "affinity": system.get("cpus_affinity"),
            "quota": system.get("cpus_quota"),
            "worker_cpus": used,
            "ready_without_processor_share": system.get("run_delay_share"),
        },
        advice="They mostly wait, for storage or for the step, so their number may be right; "
        f"compare with workers={usable}."
        if waiting
        else f"Use at most workers={usable}: more only take turns, and each takes memory.",
        setting={"workers": usable},
        rank=facts.rank,
    )


def _limits(system: Any) -> str:
    quota, affinity = system.get("cpus_quota"), system.get("cpus_affinity")
    if quota is not None:
        return f" (the container grants {significant(quota)})"
    return "" if affinity is None else f" (affinity {affinity})"


def _too_few(facts: Facts, workers: int, usable: int) -> Finding | None:
    found = stalled(facts)
    if found is None or row_by_row(facts) or tiny_batches(facts):
        return None
    needed, wanted = needed_workers(facts, found.wait), wanted_workers(facts, found.wait)
    if needed is None or wanted is None or needed <= workers:
        return None
    stages = facts.loader_stages
    assert stages is not None
    most = max(most_workers(facts) or usable, usable)
    lacking = "" if needed <= most else f", and there are processors for {most}"
    # More workers start no sooner.
    share = found.wait.share * (1 - found.starting)
    if share <= NOTE_SHARE:
        return None
    left = bound(facts, found.wait) * (1 - found.starting)
    # Of k workers' rate, more workers can give at most wanted/k times as much.
    saving = min(found.bound_ns, left, found.step_ns * (1 - workers / wanted))
    beside = " beside the start of epochs" if found.starting > NOTE_SHARE else ""
    return Finding(
        code=CODE,
        title=f"Too few workers: a step needs {needed} to make its batch in time and has {workers}"
        f"{lacking}; it waits for {share_text(share)}{beside}.",
        verdict="yes",
        severity=found.severity(saving),
        evidence={
            "workers": workers,
            "needed_workers": needed,
            "usable_cpus": usable,
            "batch_us": stages.batch_ns / 1000,
            "wait_us_per_step": found.wait.per_step_ns / 1000,
            "starvation_share": found.share("starvation") if found.split else None,
        },
        advice=f"Try workers={wanted}.{beyond_processors(facts, wanted)}"
        if needed <= most
        else f"Try workers={wanted}, and make samples cheaper: processors are not enough.",
        share_of_window=share,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=found.speedup_of(saving),
        setting={"workers": wanted},
        rank=facts.rank,
        device=found.wait.device,
    )
