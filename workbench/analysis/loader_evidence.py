"""What the loader's records say in a few numbers: stages, epochs, processes.

A batch counts once its fetch was seen. What no batch has is ``None``: not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from workbench.store.loader import LoaderRecords


@dataclass(frozen=True, kw_only=True)
class LoaderStages:
    """Sums over the batches whose fetch was recorded, in nanoseconds."""

    batches: int
    samples: int | None
    fetch_ns: int
    fetch_cpu_ns: int
    """CPU time of the fetching thread alone."""
    batch_ns: float
    """Fetch of the median batch: others that take the processor lengthen some, not most."""
    cpu_share: float
    """CPU time over the time in which the fetching thread could have had a processor, of the
    median batch."""
    run_delay_ns: int | None
    """Of the fetch, ready to run with no processor free."""
    samples_ns: int
    collate_ns: int
    read_wait_ns: int | None
    """Of the samples, inside reads and not on a processor, estimated from those looked at."""
    active_threads: float | None
    """Threads of a fetching process that used a processor on average, over the fetching one's."""
    read_bytes: int | None
    storage_bytes: int | None
    serialize_ns: int | None
    unpickle_ns: int | None
    pin_ns: int | None
    samples_per_call: float | None
    """More than one where the data set gives whole batches (``__getitems__``)."""
    batch_bytes: float | None
    """Of the median batch."""
    sent_bytes: float | None
    """Through the pipe, of the median batch; the rest goes through shared memory."""
    serialize_cpu_ns: int | None = None
    """CPU time of pickling; the rest of ``serialize_ns`` waited, mostly for the next fetch."""
    unpickle_cpu_ns: int | None = None
    unpickle_own_ns: int | None = None
    """Of ``unpickle_ns``, what computing workers did not keep waiting."""
    batch_able_ns: float | None = None
    """Of ``batch_ns``, what is left without waiting for a processor, where that was counted."""

    @property
    def read_share(self) -> float | None:
        """Of the fetch, waiting for reads."""
        if self.read_wait_ns is None or not self.fetch_ns:
            return None
        return min(1.0, self.read_wait_ns / self.fetch_ns)

    @property
    def sample_ns(self) -> float | None:
        """Fetch per sample of the median batch, collate included."""
        return self.batch_ns * self.batches / self.samples if self.samples else None

    @property
    def sample_able_ns(self) -> float | None:
        """What a sample costs with a processor free for it; others on the machine add to it."""
        able = self.batch_ns if self.batch_able_ns is None else self.batch_able_ns
        return able * self.batches / self.samples if self.samples else None


@dataclass(frozen=True, kw_only=True)
class EpochStart:
    """One start of a loader and the batches that followed it."""

    start_wait_ns: int
    """From the start to the first batch."""
    median_wait_ns: float | None
    """Of its later batches; ``None`` without any."""
    batches: int
    length_ns: int | None
    """Until the next epoch; ``None`` of an epoch that did not end."""
    batch_fetch_ns: float | None
    """Median fetch of its batches."""
    storage_bytes: int | None
    workers: int
    batch_resting_ns: float | None = None
    """Of the median batch's fetch, neither on a processor nor waiting for one; ``None`` where the
    kernel does not count the latter."""


def loader_stages(batches: pd.DataFrame) -> LoaderStages | None:
    """Sums over the batches; ``None`` where the inside of the loader was not seen."""
    seen = batches[batches["fetch_ns"].notna() & ~batches["failed"].fillna(value=False)]
    if not len(seen):
        return None
    return LoaderStages(
        batches=len(seen),
        samples=_sum(seen, "samples"),
        fetch_ns=_sum(seen, "fetch_ns") or 0,
        fetch_cpu_ns=_sum(seen, "fetch_cpu_ns") or 0,
        batch_ns=_median(seen, "fetch_ns") or 0.0,
        cpu_share=_cpu_share(seen),
        run_delay_ns=_scaled(seen, "fetch_run_delay_ns"),
        samples_ns=_sum(seen, "samples_ns") or 0,
        collate_ns=int(seen["collate_ns"].fillna(0).sum()),
        read_wait_ns=_read_wait(seen),
        active_threads=_active_threads(seen),
        read_bytes=_scaled(seen, "read_bytes"),
        storage_bytes=_scaled(seen, "storage_bytes"),
        serialize_ns=_scaled(seen, "serialize_ns"),
        unpickle_ns=_scaled(seen, "unpickle_ns"),
        pin_ns=_scaled(seen, "pin_ns"),
        samples_per_call=_samples_per_call(seen),
        batch_bytes=_median(seen, "batch_bytes"),
        sent_bytes=_median(seen, "sent_bytes"),
        serialize_cpu_ns=_scaled(seen, "serialize_cpu_ns"),
        unpickle_cpu_ns=_scaled(seen, "unpickle_cpu_ns"),
        unpickle_own_ns=_unpickle_own(seen),
        batch_able_ns=_able(seen),
    )


def epoch_starts(records: LoaderRecords) -> tuple[EpochStart, ...]:
    """Every start of the loader that delivered most batches, in order."""
    epochs, batches = records.epochs, records.batches
    delivered = batches[batches["wait_ns"].notna()]
    if not len(epochs) or not len(delivered):
        return ()
    loader = delivered["loader"].mode()
    mine = epochs[epochs["loader"] == loader.iloc[0]].sort_values("start_ns")
    starts = list(mine.itertuples(index=False))
    found = []
    for number, epoch in enumerate(starts):
        own = delivered[(delivered["stream"] == epoch.stream) & (delivered["epoch"] == epoch.epoch)]
        if not len(own):
            continue
        own = own.sort_values("wait_start_ns")
        follows = number + 1 < len(starts)
        found.append(
            EpochStart(
                start_wait_ns=int(epoch.iter_ns) + int(own["wait_ns"].iloc[0]),
                median_wait_ns=_median(own.iloc[1:], "wait_ns"),
                batches=len(own),
                length_ns=int(starts[number + 1].start_ns - epoch.start_ns) if follows else None,
                batch_fetch_ns=_median(own, "fetch_ns"),
                storage_bytes=_scaled(own, "storage_bytes"),
                workers=int(epoch.workers),
                batch_resting_ns=_resting(own),
            )
        )
    return tuple(found)


def loader_system(system: pd.DataFrame, about: Mapping[str, Any]) -> dict[str, Any]:
    """Processes and machine while the Run was measured.

    ``usable_cpus``, ``cpus_affinity``, ``cpus_quota``; ``workers`` (alive together),
    ``threads_per_worker``, ``training_threads``; ``system_share`` of the CPU time of training
    process and workers; ``worker_cpus`` (processors' worth of time that all workers used),
    ``run_delay_share`` (ready to run with no processor free, of that and CPU time);
    ``block_delay_share`` (of the time, waiting for a block device, all processes together);
    ``involuntary_switches_per_s``; ``shared_memory_free_bytes`` (the most), ``storage``,
    ``network_mounts``.
    """
    span = _span(system["at_ns"])
    workers = system[system["process"] == "worker"]
    processes = system[system["process"].isin(("training", "worker"))]
    grown = [_grown(rows) for _, rows in processes.groupby(["process", "pid"])]
    own = [_grown(rows) for _, rows in workers.groupby("pid")]
    used, kernel = _total(grown, "user_ns"), _total(grown, "system_ns")
    cpu, delay = _total(grown, "cpu_ns"), _total(grown, "run_delay_ns")
    worker_cpu = _total(own, "cpu_ns")
    switches = _total(grown, "involuntary_switches")
    blocked = _total(grown, "block_delay_ns")
    host = system[system["process"] == "host"]
    training = system[system["process"] == "training"]
    return {
        "usable_cpus": about.get("cpus_usable"),
        "cpus_affinity": about.get("cpus_affinity"),
        "cpus_quota": about.get("cpus_quota"),
        "workers": int(workers.groupby("at_ns")["pid"].nunique().max()) if len(workers) else 0,
        "threads_per_worker": _most(workers, "threads"),
        "training_threads": _most(training, "threads"),
        "system_share": None if not used and not kernel else _ratio(kernel, used, kernel),
        "worker_cpus": None if worker_cpu is None or not span else worker_cpu / span,
        "run_delay_share": _ratio(delay, cpu, delay),
        "block_delay_share": None if blocked is None or not span else blocked / span,
        "involuntary_switches_per_s": None
        if switches is None or not span
        else switches / span * 1e9,
        "shared_memory_free_bytes": _most(host, "shared_memory_free_bytes"),
        "storage": list(about.get("storage") or ()),
        "network_mounts": list(about.get("network_mounts") or ()),
    }


def _able(seen: pd.DataFrame) -> float | None:
    known = seen[["fetch_ns", "fetch_run_delay_ns"]].dropna().astype("float64")
    able = known["fetch_ns"] - known["fetch_run_delay_ns"]
    return float(able.clip(lower=0).median()) if len(known) else None


def _cpu_share(seen: pd.DataFrame) -> float:
    """Of the batches whose delays were counted; of all, where none was."""
    known = seen[seen["fetch_run_delay_ns"].notna()]
    rows = known if len(known) else seen
    able = rows["fetch_ns"] - rows["fetch_run_delay_ns"].fillna(0)
    shares = (rows["fetch_cpu_ns"] / able)[able > 0].dropna().astype("float64")
    return min(1.0, float(shares.median())) if len(shares) else 0.0


def _resting(rows: pd.DataFrame) -> float | None:
    known = rows[["fetch_ns", "fetch_cpu_ns", "fetch_run_delay_ns"]].dropna().astype("float64")
    rest = known["fetch_ns"] - known["fetch_cpu_ns"] - known["fetch_run_delay_ns"]
    return float(rest.clip(lower=0).median()) if len(known) else None


def _read_wait(seen: pd.DataFrame) -> int | None:
    """Waiting in reads, from the samples looked at to all samples of the batches."""
    looked = _sum(seen, "looked_ns")
    if not looked:
        return None
    waited = (_sum(seen, "looked_read_ns") or 0) - (_sum(seen, "looked_read_cpu_ns") or 0)
    return int((_sum(seen, "samples_ns") or 0) * min(1.0, max(waited, 0) / looked))


def _active_threads(seen: pd.DataFrame) -> float | None:
    """In worker processes only: the training process has threads of its own work."""
    apart = seen[seen["worker"].notna() & seen["fetch_process_cpu_ns"].notna()]
    wall = _sum(apart, "fetch_ns")
    if not wall:
        return None
    others = (_sum(apart, "fetch_process_cpu_ns") or 0) - (_sum(apart, "fetch_cpu_ns") or 0)
    return 1.0 + max(others, 0) / wall


def _unpickle_own(seen: pd.DataFrame) -> int | None:
    from workbench.analysis.stalls.batches import batches_of
    from workbench.analysis.stalls.fetch import fetch_shares
    from workbench.analysis.stalls.handing import unpacking_ns

    known = int(seen["unpickle_ns"].notna().sum())
    found = unpacking_ns(batches_of(seen), fetch_shares(seen)) if known else None
    return None if found is None else int(found * (len(seen) / known))


def _samples_per_call(seen: pd.DataFrame) -> float | None:
    """Of the calls that were looked at."""
    if "items" not in seen:
        return None
    counts = [item["samples"] for items in seen["items"] for item in items or ()]
    return sum(counts) / len(counts) if counts else None


def _sum(rows: pd.DataFrame, name: str) -> int | None:
    known = rows[name].dropna()
    return int(known.sum()) if len(known) else None


def _scaled(rows: pd.DataFrame, name: str) -> int | None:
    """The sum over all rows, from those that have the number."""
    known = rows[name].dropna()
    return int(known.sum() * (len(rows) / len(known))) if len(known) else None


def _median(rows: pd.DataFrame, name: str) -> float | None:
    known = rows[name].dropna()
    return float(known.astype("float64").median()) if len(known) else None


def _most(rows: pd.DataFrame, name: str) -> int | None:
    known = rows[name].dropna()
    return int(known.max()) if len(known) else None


def _span(at: pd.Series[Any]) -> int:
    return int(at.max() - at.min()) if len(at) else 0


def _grown(rows: pd.DataFrame) -> dict[str, int | None]:
    """By how much the counters of one process grew between its first and last sample."""
    names = ("user_ns", "system_ns", "cpu_ns", "run_delay_ns", "involuntary_switches")
    rows = rows.sort_values("at_ns")
    found: dict[str, int | None] = {}
    for name in (*names, "block_delay_ns"):
        known = rows[name].dropna()
        found[name] = int(known.iloc[-1] - known.iloc[0]) if len(known) > 1 else None
    return found


def _total(grown: list[dict[str, int | None]], name: str) -> int | None:
    known = [one[name] for one in grown if one[name] is not None]
    return sum(known) if known else None  # type: ignore[arg-type]


def _ratio(part: int | None, *whole: int | None) -> float | None:
    known = [value for value in whole if value is not None]
    if part is None or len(known) < len(whole) or not sum(known):
        return None
    return part / sum(known)
