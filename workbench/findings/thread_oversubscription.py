"""WB106: the threads of all workers, or of all ranks, together are more than the processors.

What: worker processes times the threads that each of them keeps, against the usable processors,
with the processor time that the kernel and waiting for a processor take. And ranks times threads,
where the ranks compute on the processors themselves.
Why: libraries (OpenCV, OpenMP, BLAS) size a pool of threads to all cores in every process; together
they switch more than they work.
What to do: one thread a worker, in worker_init_fn: torch.set_num_threads(1), cv2.setNumThreads(0),
or OMP_NUM_THREADS=1 in the environment; of ranks as many as the processors allow.
When it is wrong: threads that sleep cost nothing, so the number alone is no finding; on a machine
that others load as well, waiting for a processor is theirs. The bound is everything that workers
compute, since threads in each other's way lengthen that too; far less of it goes.
"""

from typing import Any

from workbench.findings.finding import Facts, Finding
from workbench.findings.making import usable_cpus
from workbench.findings.rank_threads import rank_threads
from workbench.findings.stalled import stalled
from workbench.units import count_text, share_text

CODE = "WB106"

PLAIN_THREADS = 3
"""A worker of torch without any pool: its loop, the thread that feeds its queue, and one more."""
SYSTEM_SHARE = 0.10
"""As the design's list of findings has it: 4 % grew to 23 % in open-mmlab/mmdetection PR 6867."""
ACTIVE_THREADS = 1.2
"""Own choice: threads of a worker that used processors, over the fetching one, from which on its
pool works."""
WAIT_SHARE = 0.2
"""Own choice: of the wait for input, the part that a stall split gives to oversubscription."""


def thread_oversubscription(facts: Facts) -> Finding | None:
    """Fires when threads of ranks, or those of workers that are seen to cost, are too many."""
    return rank_threads(facts) or _of_workers(facts)


def _of_workers(facts: Facts) -> Finding | None:
    """Pools of threads in the workers."""
    system, usable = facts.loader_system, usable_cpus(facts)
    if not system or usable is None:
        return None
    workers, threads = system.get("workers") or 0, system.get("threads_per_worker")
    pool = 0 if threads is None else threads - PLAIN_THREADS + 1
    total = workers * pool
    if pool < 2 or total <= usable:
        return None
    cost = _cost(facts, system)
    if not cost:
        return None
    found = stalled(facts)
    saving = None if found is None else found.saving_ns(_PART, *_LENGTHENED) or None
    waited = None if found is None else found.saving_ns(_PART) or None
    return Finding(
        code=CODE,
        title=f"{count_text(workers)} workers × {count_text(pool)} threads = "
        f"{count_text(total)} on {count_text(usable)} usable "
        f"{'processor' if usable == 1 else 'processors'}: "
        f"{' and '.join(cost)}.",
        verdict="yes",
        severity="info"
        if found is None
        else found.severity(found.bound_ns if waited is None else waited),
        evidence={
            "workers": workers,
            "threads_per_worker": threads,
            "training_threads": system.get("training_threads"),
            "usable_cpus": usable,
            "system_share": system.get("system_share"),
            "ready_without_processor_share": system.get("run_delay_share"),
            "involuntary_switches_per_s": system.get("involuntary_switches_per_s"),
            "active_threads": None if facts.loader_stages is None else _active(facts),
        },
        advice="Give each worker one thread, in worker_init_fn: torch.set_num_threads(1) and "
        "cv2.setNumThreads(0), or OMP_NUM_THREADS=1 in the environment.",
        share_of_window=None if found is None else found.wait.share * found.share(_PART) or None,
        saving_ns_per_step_at_most=saving,
        speedup_at_most=None if found is None or saving is None else found.speedup_of(saving),
        setting={"worker_threads": 1} if workers else None,
        rank=facts.rank,
    )


_PART = "oversubscription"
_LENGTHENED = ("decode", "collate")
"""Threads that spin, switch and empty each other's caches lengthen the work itself as well."""


def _active(facts: Facts) -> float | None:
    return None if facts.loader_stages is None else facts.loader_stages.active_threads


def _cost(facts: Facts, system: Any) -> list[str]:
    """What shows that these threads do more than sleep."""
    said = []
    kernel, active = system.get("system_share"), _active(facts)
    if kernel is not None and kernel > SYSTEM_SHARE:
        said.append(f"{share_text(kernel)} of the processor time goes to the kernel")
    if active is not None and active > ACTIVE_THREADS:
        said.append("their pools are at work")
    found = stalled(facts)
    if found is not None and found.split and found.share(_PART) >= WAIT_SHARE:
        said.append("batches wait for a processor")
    return said
