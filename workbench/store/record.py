"""``run.json``: what a Run remembers beside its trace."""

from typing import Any

import msgspec

SCHEMA = "workbench.run/1"


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Step times in nanoseconds, measured in the training process itself.

    ``step_ns`` is the record: whole steps, completion to completion, without the profiler.
    """

    step_ns: list[int]
    input_ns: list[int]
    """Waiting for the next batch inside each of those steps."""
    warmup: int
    """How many of the first steps the change test counts as warm-up."""
    blocks: list[int]
    """``step_ns`` was measured in this many consecutive blocks of these lengths (before and after the
    profiled window): their spread is the A/A noise floor."""
    profiled_step_ns: list[int]
    """The same under the profiler: for the overhead ratio, never shown as step times."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in ``run.json``; fields are only ever added."""

    schema: str = SCHEMA
    name: str
    created: str
    """Local time with offset, ISO 8601."""
    workbench: str
    settings: dict[str, Any]
    """The Settings that were asked for; empty means as the user has it."""
    effective: dict[str, Any]
    """What was in force: batch size, workers, precision, device and so on, also where not asked for."""
    record: dict[str, bool]
    environment: dict[str, Any]
    """Versions, usable CPUs, device names, load: no user name, host name, path or variable."""
    seeds: dict[str, Any]
    timings: Timings | None
    """``None`` for a capture around the user's own loop that measured nothing without the profiler."""
    overhead_ratio: float | None
    """Median profiled step ÷ median step of record."""
    samples_per_step: float | None
    garbage_collection: dict[str, Any] | None = None
    """Collections and nanoseconds per generation during the steps of record."""
    compilation: dict[str, Any] | None = None
    """torch.compile counters: graphs, graph breaks, recompiles, seconds."""
    load: dict[str, Any] | None = None
    """Load average and CPU share of other processes before and after."""
    warnings: list[str] = []
    """Distinct warnings that the user's code raised during the run."""
    notes: list[str] = []
    """What was decided for the user and should be said: batch size assumed, weights restored, …"""
    traces: list[str] = []
    """Names of the trace files in the folder, one per rank."""
    labels: dict[str, str] = {}
    """Names that had to be altered for the trace, altered → real."""
