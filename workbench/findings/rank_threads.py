"""The threads of all ranks of one machine against its processors: a part of WB106."""

from workbench.findings.finding import Facts, Finding
from workbench.findings.making import usable_cpus
from workbench.units import count_text

CODE = "WB106"


def rank_threads(facts: Facts) -> Finding | None:
    """Fires when ranks that compute on the CPU have more threads together than processors.

    Launchers differ: torchrun gives each rank one thread, others nothing, and then every rank sizes
    its pool to the whole machine.
    """
    ranks = facts.effective.get("local_world_size") or facts.effective.get("world_size")
    threads, usable = facts.effective.get("threads"), usable_cpus(facts)
    if not isinstance(ranks, int) or not isinstance(threads, int) or usable is None:
        return None
    if ranks < 2 or facts.devices or ranks * threads <= usable:
        return None
    fair = max(1, usable // ranks)
    processors = "processor" if usable == 1 else "processors"
    if threads == 1:
        advice = "Start no more ranks on this machine than it has processors."
    else:
        advice = (
            f"Give each rank {count_text(fair)} thread{'s' if fair > 1 else ''}: "
            f"OMP_NUM_THREADS={fair} before the launch, or torch.set_num_threads({fair})."
        )
    return Finding(
        code=CODE,
        title=f"{count_text(ranks)} ranks × {count_text(threads)} threads = "
        f"{count_text(ranks * threads)} on {count_text(usable)} usable {processors}: the ranks "
        "take the processors from each other.",
        verdict="yes",
        severity="warning",
        evidence={"ranks": ranks, "threads_per_rank": threads, "usable_cpus": usable},
        advice=advice,
        setting=None if threads == 1 else {"threads": fair},
        rank=facts.rank,
    )
