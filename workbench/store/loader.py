"""``loader.arrow`` and ``system.arrow``: their columns, and reading them without torch.

Times ending in ``start_ns``, ``at_ns``, ``ready_ns``, ``received_ns``, ``created_ns`` and
``entered_ns`` are Unix nanoseconds on the clock of the Run's trace; all other ``_ns`` are lengths.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.store.columns import Columns, read_columns

if TYPE_CHECKING:
    import pandas as pd

LOADER_FILE = "loader.arrow"
SYSTEM_FILE = "system.arrow"

BATCH_COLUMNS = {
    "loader": "int32",
    "stream": "int32",
    "epoch": "int32",
    "batch": "int64",
    "step": "int64",
    "worker": "int32",
    "pid": "int64",
    "samples": "int64",
    "batch_bytes": "int64",
    "failed": "bool",
    "sampler_start_ns": "int64",
    "sampler_ns": "int64",
    "index_wait_start_ns": "int64",
    "index_wait_ns": "int64",
    "fetch_start_ns": "int64",
    "fetch_ns": "int64",
    "fetch_cpu_ns": "int64",
    "fetch_process_cpu_ns": "int64",
    "fetch_run_delay_ns": "int64",
    "read_bytes": "int64",
    "read_calls": "int64",
    "storage_bytes": "int64",
    "major_faults": "int64",
    "voluntary_switches": "int64",
    "involuntary_switches": "int64",
    "samples_ns": "int64",
    "samples_cpu_ns": "int64",
    "looked_samples": "int64",
    "looked_ns": "int64",
    "looked_cpu_ns": "int64",
    "looked_run_delay_ns": "int64",
    "looked_read_ns": "int64",
    "looked_read_cpu_ns": "int64",
    "looked_read_run_delay_ns": "int64",
    "looked_read_bytes": "int64",
    "looked_storage_bytes": "int64",
    "collate_start_ns": "int64",
    "collate_ns": "int64",
    "collate_cpu_ns": "int64",
    "collate_run_delay_ns": "int64",
    "serialize_start_ns": "int64",
    "serialize_ns": "int64",
    "serialize_cpu_ns": "int64",
    "send_ns": "int64",
    "sent_bytes": "int64",
    "send_run_delay_ns": "int64",
    "ready_ns": "int64",
    "receive_ns": "int64",
    "unpickle_ns": "int64",
    "unpickle_cpu_ns": "int64",
    "receive_run_delay_ns": "int64",
    "received_ns": "int64",
    "pin_start_ns": "int64",
    "pin_ns": "int64",
    "held_ns": "int64",
    "wait_start_ns": "int64",
    "wait_ns": "int64",
    "probe_ns": "int64",
    "items": "items",
}
"""Columns of the batches, one row a batch."""

SYSTEM_COLUMNS = {
    "at_ns": "int64",
    "process": "string",
    "worker": "int32",
    "stream": "int32",
    "pid": "int64",
    "cpu_ns": "int64",
    "user_ns": "int64",
    "system_ns": "int64",
    "io_wait_ns": "int64",
    "run_delay_ns": "int64",
    "threads": "int64",
    "voluntary_switches": "int64",
    "involuntary_switches": "int64",
    "read_bytes": "int64",
    "storage_bytes": "int64",
    "block_delay_ns": "int64",
    "major_faults": "int64",
    "resident_bytes": "int64",
    "shared_memory_bytes": "int64",
    "shared_memory_free_bytes": "int64",
    "available_bytes": "int64",
    "load_average": "float64",
    "cpu_stall_ns": "int64",
    "io_stall_ns": "int64",
    "received_bytes": "int64",
    "device": "int32",
    "gpu_utilization_percent": "float64",
    "gpu_memory_utilization_percent": "float64",
    "gpu_memory_used_bytes": "int64",
    "gpu_power_w": "float64",
    "gpu_clock_mhz": "float64",
    "gpu_temperature_c": "float64",
}
"""Columns of the samples of the system: one row an instant and process, one for the host, and one
for each device that a driver tells of, whose ``process`` is ``device``.

All but ``threads``, ``resident_bytes``, ``shared_memory*``, ``available_bytes``, ``load_average``
and ``gpu_*`` only ever grow: their differences between two instants are what happened."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LoaderRecords:
    """What the loader's probes recorded in a Run."""

    batches: "pd.DataFrame"
    workers: "pd.DataFrame"
    """One row a worker process: ``loader``, ``stream``, ``worker``, ``pid``, ``created_ns``,
    ``entered_ns``, ``ready_ns``, ``cpu_ns``, ``exit_code``."""
    epochs: "pd.DataFrame"
    """One row a start of a loader: ``loader``, ``stream``, ``epoch``, ``start_ns``, ``iter_ns``,
    ``workers``, ``detail``, ``first_step``."""
    about: dict[str, Any]
    """``clock_offset_ns``, ``clock_error_ns``, ``clock_source``, ``overhead_share``, …"""


def read_loader(folder: Path, base_ns: int = 0) -> LoaderRecords | None:
    """What the loader did, with times counted from ``base_ns``; ``None`` when not recorded."""
    import pandas as pd

    path = folder / LOADER_FILE
    if not path.is_file():
        return None
    read = read_columns(path, BATCH_COLUMNS)
    about = dict(read.about)
    workers = pd.DataFrame(about.pop("workers", []), columns=list(WORKER_COLUMNS))
    epochs = pd.DataFrame(about.pop("epochs", []), columns=list(EPOCH_COLUMNS))
    workers = workers.astype(WORKER_COLUMNS)
    epochs = epochs.astype(EPOCH_COLUMNS)
    batches = _from(read.frame(), BATCH_INSTANTS, base_ns)
    items = [_items(items, base_ns) for items in batches["items"]]
    batches["items"] = pd.Series(items, index=batches.index, dtype=object)
    return LoaderRecords(
        batches=batches,
        workers=_from(workers, ("created_ns", "entered_ns", "ready_ns"), base_ns),
        epochs=_from(epochs, ("start_ns",), base_ns),
        about=about,
    )


def read_system(folder: Path, base_ns: int = 0) -> "tuple[pd.DataFrame, dict[str, Any]] | None":
    """Samples of processes and host, times counted from ``base_ns``, and what does not change."""
    path = folder / SYSTEM_FILE
    if not path.is_file():
        return None
    read: Columns = read_columns(path, SYSTEM_COLUMNS)
    return _from(read.frame(), ("at_ns",), base_ns), read.about


BATCH_INSTANTS = (
    "sampler_start_ns",
    "index_wait_start_ns",
    "fetch_start_ns",
    "collate_start_ns",
    "serialize_start_ns",
    "ready_ns",
    "received_ns",
    "pin_start_ns",
    "wait_start_ns",
)
"""Columns of the batches that are instants and no lengths."""
WORKER_COLUMNS = dict.fromkeys(
    [
        "loader",
        "stream",
        "worker",
        "pid",
        "created_ns",
        "entered_ns",
        "ready_ns",
        "cpu_ns",
        "exit_code",
    ],
    "Int64",
)
EPOCH_COLUMNS = dict.fromkeys(
    ("loader", "stream", "epoch", "start_ns", "iter_ns", "workers"), "Int64"
) | {"detail": "string", "first_step": "Int64"}


def _from(frame: "pd.DataFrame", instants: tuple[str, ...], base_ns: int) -> "pd.DataFrame":
    for name in instants:
        frame[name] -= base_ns
    return frame


def _items(items: Any, base_ns: int) -> list[dict[str, Any]]:
    if items is None:
        return []
    return [{**item, "start_ns": item["start_ns"] - base_ns} for item in items]
