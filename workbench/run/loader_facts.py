"""What the rules may know of a Run's loader: its stages, epochs and processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.run.loader import about

if TYPE_CHECKING:
    from workbench.run.run import Run


def loader_facts(run: Run) -> dict[str, Any]:
    """Fields of the facts by name; what was not recorded is left out."""
    from workbench.analysis.loader_evidence import epoch_starts, loader_stages, loader_system

    found: dict[str, Any] = {}
    records, system = run.loader_records, run.system
    if records is not None:
        found["loader_stages"] = loader_stages(records.batches)
        found["epoch_starts"] = epoch_starts(records)
    if system is not None and len(system):
        found["loader_system"] = loader_system(system, about(system))
    stalls = run.rank().stalls
    if stalls is not None:
        found["stalls_ns"] = dict(stalls.by_part)
        found["stalls_other_ns"] = dict(stalls.other_by)
    return found
