"""The list of planted faults, and how to pick one."""

import dataclasses

from workbench.clinic.case import Case
from workbench.clinic.processes import (
    many_small_tensors,
    one_slow_worker,
    oversubscription,
    pinning_cost,
    startup_each_epoch,
)
from workbench.clinic.samples import row_wise_table, slow_collate, slow_decode, slow_storage
from workbench.errors import WorkloadError

CASES: tuple[Case, ...] = (
    Case(
        name="slow_decode",
        question="The model is tiny and yet a step takes tens of milliseconds. What does it do?",
        answer="It waits for its batch: each sample is decoded in the training process, which "
        "keeps a processor busy. Worker processes decode beside the training.",
        finding="WB102",
        stall="decode",
        plant=slow_decode,
        cure={"workers": 2},
    ),
    Case(
        name="slow_storage",
        question="Steps are slow, and yet the processors have almost nothing to do. Who is busy?",
        answer="Nobody: each sample waits for storage to answer. Workers wait side by side, and "
        "as waiting needs no processor, there may be more of them than processors.",
        finding="WB103",
        stall="storage",
        plant=slow_storage,
        cure={"workers": 4},
    ),
    Case(
        name="slow_collate",
        question="A single sample takes next to no time. Why is a batch of sixteen so slow?",
        answer="The collate function builds the tensor number by number. Stack arrays or tensors "
        "instead; worker processes hide the cost without removing it.",
        finding="WB102",
        stall="collate",
        plant=slow_collate,
        cure={"workers": 2},
    ),
    Case(
        name="row_wise_table",
        question="All data is in memory, and loading is the bottleneck. Would workers help?",
        answer="No: a row costs microseconds of Python, and handing batches over costs more. "
        "Fetch the whole batch with one index call (__getitems__).",
        finding="WB102",
        stall="decode",
        plant=row_wise_table,
        cure={"batched_fetch": True},
    ),
    Case(
        name="startup_each_epoch",
        question="Every twelfth step is slow by a large margin. What happens there?",
        answer="A new epoch: worker processes are started again and take long to get ready. "
        "Keep them alive between epochs.",
        finding="WB104",
        stall="startup",
        plant=startup_each_epoch,
        cure={"persistent_workers": True},
    ),
    Case(
        name="oversubscription",
        question="Two workers load less than one process does. What are they busy with?",
        answer="Taking processors from each other: every worker runs a pool of threads as if it "
        "had the machine for itself. One thread in each worker is enough.",
        finding="WB106",
        stall="oversubscription",
        plant=oversubscription,
        cure={"worker_threads": 1},
    ),
    Case(
        name="one_slow_worker",
        question="Every other batch is late, though all samples are alike. Where is it made?",
        answer="From one worker that is slower than the other. Batches are delivered in order, so "
        "the loop waits for it; out of order, the quick one does more of the work.",
        finding="WB102",
        stall="decode",
        plant=one_slow_worker,
        cure={"in_order": False},
    ),
    Case(
        name="many_small_tensors",
        question="The worker is idle and the step waits all the same. Who is keeping it waiting?",
        answer="The hand-over: each of a batch's many tensors crosses between processes by itself. "
        "Pack them into one tensor, or load in the training process.",
        finding="WB107",
        stall="transfer",
        plant=many_small_tensors,
        cure={"workers": 0},
    ),
    Case(
        name="pinning_cost",
        question="Page-locked memory makes copies faster. Does it make this loop faster?",
        answer="No: one thread copies each of a batch's many tensors by itself, and the loop waits "
        "for that thread. Pack them into one tensor, or do without pinning.",
        finding="WB107",
        stall="pin",
        plant=pinning_cost,
        cure={"pin_memory": False},
        needs_accelerator=True,
    ),
)
"""Every planted fault."""


def case(name: str, *, seed: int = 0, scale: float = 1.0) -> Case:
    """The planted fault of this name.

    Args:
        name: One of the names in ``CASES``.
        seed: Decides every number in it.
        scale: How large the fault is: 1 is plain to see on two processor cores, 0 is the same loop
            without it.

    Raises:
        WorkloadError: There is no case of this name, or seed or scale is out of range.
    """
    for one in CASES:
        if one.name == name:
            return dataclasses.replace(one, seed=seed, scale=scale)
    known = ", ".join(one.name for one in CASES)
    raise WorkloadError(f"there is no planted fault {name!r}; there are: {known}.")
