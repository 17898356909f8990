"""The list of planted faults, and how to pick one."""

import dataclasses
from collections.abc import Callable
from typing import Any

from workbench.clinic.case import Case
from workbench.clinic.loops import (
    garbage_collection,
    logging_every_step,
    retained_graph,
    sync_in_loop,
)
from workbench.clinic.models import (
    misaligned_matmul,
    recompiles,
    repeated_casts,
    single_tensor_optimizer,
    tiny_batch,
)
from workbench.clinic.processes import (
    many_small_tensors,
    one_slow_worker,
    oversubscription,
    pinning_cost,
    startup_each_epoch,
)
from workbench.clinic.ranks import extra_syncs, straggler
from workbench.clinic.samples import (
    list_to_tensor,
    row_wise_table,
    slow_collate,
    slow_decode,
    slow_storage,
)
from workbench.clinic.words import WORDS
from workbench.errors import WorkloadError
from workbench.settings import Parallel, Record
from workbench.workload import Workload

Plant = Callable[[int, float], Workload]
Cure = dict[str, Any]

# fmt: off
_TABLE: tuple[tuple[Plant, str, str | None, Cure], ...] = (
    # fault                   finding  part of the wait    cure, where settings are one
    (slow_decode,             "WB102", "decode",           {"workers": 2}),
    (slow_storage,            "WB103", "storage",          {"workers": 4}),
    (slow_collate,            "WB102", "collate",          {}),
    (list_to_tensor,          "WB102", "collate",          {}),
    (row_wise_table,          "WB102", "decode",           {}),
    (startup_each_epoch,      "WB104", "startup",          {"persistent_workers": True}),
    (oversubscription,        "WB106", "oversubscription", {"worker_threads": 1}),
    (one_slow_worker,         "WB102", "decode",           {"in_order": False}),
    (many_small_tensors,      "WB107", "transfer",         {"workers": 0}),
    (pinning_cost,            "WB107", "pin",              {"pin_memory": False}),
    (tiny_batch,              "WB201", None,               {"batch_size": 128}),
    (sync_in_loop,            "WB203", None,               {}),
    (single_tensor_optimizer, "WB205", None,               {"optimizer": "fused"}),
    (recompiles,              "WB207", None,               {"compile_dynamic": True}),
    (logging_every_step,      "WB209", None,               {}),
    (garbage_collection,      "WB210", None,               {}),
    (misaligned_matmul,       "WB303", None,               {}),
    (repeated_casts,          "WB304", None,               {}),
    (straggler,               "WB402", None,               {}),
    (extra_syncs,             "WB404", None,               {}),
    (retained_graph,          "WB501", None,               {}),
)
# fmt: on
_ON_A_DEVICE = (pinning_cost, tiny_batch, sync_in_loop)
_TWO_RANKS: Cure = {"parallel": Parallel(mode="ddp", world_size=2)}
_GIVEN: dict[Plant, Cure] = {
    recompiles: {"compile": True, "compile_dynamic": False},
    straggler: _TWO_RANKS,
    extra_syncs: _TWO_RANKS,
}
"""Settings without which the fault cannot show."""
_RECORDS: dict[Plant, Record] = {retained_graph: Record(memory=True)}
"""What must be recorded for it to show."""


def _case(plant: Plant, finding: str, stall: str | None, cure: Cure) -> Case:
    question, answer = WORDS[plant.__name__]
    return Case(
        name=plant.__name__,
        question=question,
        answer=answer,
        finding=finding,
        stall=stall,
        plant=plant,
        cure=cure,
        needs=_GIVEN.get(plant, {}),
        record=_RECORDS.get(plant, Record()),
        needs_accelerator=plant in _ON_A_DEVICE,
    )


CASES = tuple(_case(*row) for row in _TABLE)
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
