"""Facts about a loader, written by hand, and what the rules find in them."""

from typing import Any

from workbench.analysis.loader_evidence import LoaderStages
from workbench.findings import diagnose
from workbench.findings.finding import Facts, Finding

MS, MB = 1_000_000, 1_000_000


def stages(**changes: Any) -> LoaderStages:
    """Ten batches of 8 samples; 80 ms each of decoding on a processor, nothing read."""
    fields: dict[str, Any] = {
        "batches": 10,
        "samples": 80,
        "fetch_ns": 800 * MS,
        "fetch_cpu_ns": 790 * MS,
        "batch_ns": 80.0 * MS,
        "cpu_share": 0.99,
        "run_delay_ns": 0,
        "samples_ns": 790 * MS,
        "collate_ns": 10 * MS,
        "read_wait_ns": 0,
        "active_threads": None,
        "read_bytes": 0,
        "storage_bytes": 0,
        "serialize_ns": 0,
        "unpickle_ns": 0,
        "pin_ns": None,
        "samples_per_call": 1.0,
        "batch_bytes": 1e6,
        "sent_bytes": 1e3,
    }
    return LoaderStages(**fields | changes)


def waiting(step_ms: float, wait_ms: float, **rest: Any) -> Facts:
    """Twenty steps of record that each wait for their batch."""
    effective = {"workers": 2, "samples_per_step": 8} | rest.pop("effective", {})
    return Facts(
        step_ns=(int(step_ms * MS),) * 20,
        input_ns=(int(wait_ms * MS),) * 20,
        effective=effective,
        environment={"usable_cpus": rest.pop("usable", 8)},
        **rest,
    )


def found(facts: Facts, code: str) -> Finding | None:
    return next((finding for finding in diagnose(facts) if finding.code == code), None)


def codes(facts: Facts) -> set[str]:
    return {finding.code for finding in diagnose(facts)}
