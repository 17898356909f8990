"""What the loader's workers and the machine did while a Run was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from workbench.run.run import Run
    from workbench.store.loader import LoaderRecords
    from workbench.store.record import RunRecord
    from workbench.trace.table import Trace

TO_DEVICE = "workbench.to_device"
"""Our own loops' range around bringing a batch to the device."""


def loader_records(run: Run) -> LoaderRecords | None:
    """The loader's records, on the clock of the trace; ``None`` where none were made."""
    from workbench.store.loader import read_loader

    folder = _folder(run, "loader.arrow")
    if folder is None:
        return None
    records = read_loader(folder, run.trace.base_ns or 0)
    if records is not None:
        records.batches["to_device_ns"] = to_device(run.trace, records.batches)
    return records


def system_samples(run: Run) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """Samples of processes and host, and what does not change, such as usable processors."""
    from workbench.store.loader import read_system

    folder = _folder(run, "system.arrow")
    return None if folder is None else read_system(folder, run.trace.base_ns or 0)


def power_of(run: Run) -> pd.DataFrame | None:
    """Power and energy of the devices; ``None`` where no driver told of any."""
    from workbench.analysis.power import power_table
    from workbench.run.replayed import step_of_record

    if run.system is None:
        return None
    samples = None if run.record is None else run.record.samples_per_step
    return power_table(run.system, step_of_record(run.record), samples)


def about(system: pd.DataFrame) -> dict[str, Any]:
    """What does not change while samples are taken."""
    return {str(name): value for name, value in system.attrs.items()}


def to_device(trace: Trace, batches: pd.DataFrame) -> pd.Series[int]:
    """Host time of bringing each batch to the device, where the trace holds it."""
    import pandas as pd

    events = trace.events
    rows = np.flatnonzero(np.isin(events.name, trace.name_codes(lambda name: name == TO_DEVICE)))
    taken = pd.Series(pd.NA, index=batches.index, dtype="Int64")
    delivered = (batches["wait_start_ns"] + batches["wait_ns"]).dropna().astype("int64")
    ends = np.sort(delivered.to_numpy())
    order = delivered.index[np.argsort(delivered.to_numpy(), kind="stable")]
    for row in rows:
        index = int(np.searchsorted(ends, events.ts[row], "right")) - 1
        if index >= 0:
            known = taken[order[index]]
            taken[order[index]] = int(events.dur[row]) + (0 if pd.isna(known) else int(known))
    return taken


def loader_not_measured(run: Run) -> dict[str, str]:
    """Why the tables about the loader are missing, by name."""
    if run.record is None:
        why = "a trace holds nothing of loader workers: wb.profile and wb.capture record them"
        return {"loader": why, "system": why, "power": why}
    reasons = {}
    if run.power is None:
        reasons["power"] = "no driver of a device told of its power or clock often enough"
    if _folder(run, "system.arrow") is None:
        reasons["system"] = _why_not(run.record)
    if _folder(run, "loader.arrow") is None:
        reasons["loader"] = reasons.get("system") or (
            "no loader was seen: in a loop of your own, cap.watch(loader) lets it be recorded"
        )
    return reasons


def _why_not(record: RunRecord) -> str:
    """Why nothing of the loader's inside and of the machine lies beside the trace."""
    if record.record.get("loader") is False:
        return "it was switched off: Record(loader=False) was given; leave that out"
    if any(note.startswith("a burst") for note in record.notes):
        return "this burst of a session recorded the trace alone: wb.profile records the loader too"
    return "the version that recorded this Run did not write it: record once more"


def _folder(run: Run, name: str) -> Path | None:
    folder = run.place
    return folder if folder is not None and (folder / name).is_file() else None
