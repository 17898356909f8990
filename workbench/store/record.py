"""``run.json``: what a Run remembers beside its trace."""

from typing import Annotated, Any

import msgspec

from workbench.errors import RunError
from workbench.store.shapes import check_shapes

SCHEMA = "workbench.run/1"
RECORD_NAME = "run.json"

Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Step times in nanoseconds, measured in the training process itself.

    ``step_ns`` is the record: whole steps, completion to completion, without the profiler.
    """

    step_ns: list[Nanoseconds]
    input_ns: list[Nanoseconds]
    """Waiting for the next batch inside each of those steps, the loader's start included; empty
    when the waits could not be seen (a capture whose loop does not use ``watch``)."""
    warmup: Count
    """How many of the first steps belong to warm-up; they are part of the first block."""
    blocks: list[Count]
    """``step_ns`` was measured in this many consecutive blocks of these lengths (before and
    after the profiled window): their spread is the A/A noise floor."""
    profiled_step_ns: list[Nanoseconds]
    """The same under the profiler: for the overhead ratio, never shown as step times."""
    replay_ns: list[Nanoseconds] | None = None
    """Whole steps on batches that waited in memory, with the loader at rest: the step if the
    loader were free. ``None``: not measured."""
    turns: str | None = None
    """Runs with the same mark took turns, block by block, so that a drift of the machine met both;
    ``None``: measured alone."""


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
    """What was in force, also where not asked for: batch size, workers, precision, device, …"""
    record: dict[str, bool]
    environment: dict[str, Any]
    """Versions, usable CPUs, device names, load: no user name, host name, path or variable."""
    seeds: dict[str, Any]
    timings: Timings | None
    """``None`` for a capture around the user's loop that measured nothing without the profiler."""
    overhead_ratio: Annotated[float, msgspec.Meta(gt=0)] | None
    """Median profiled step ÷ median step of record."""
    samples_per_step: Annotated[float, msgspec.Meta(ge=0)] | None
    garbage_collection: dict[str, Any] | None = None
    """Collections and nanoseconds per generation during the steps of record."""
    compilation: dict[str, Any] | None = None
    """torch.compile counters: graphs, graph breaks, recompiles, seconds; and the ``functions`` that
    were compiled again, with the last guard that failed and the step in which the limit was
    reached."""
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
    loader: dict[str, Any] | None = None
    """The probes in the loader: how much they can have slowed a step down (``overhead_share``),
    the offset of their clock to the trace's and its error; ``None`` without probes."""
    loader_alone: dict[str, Any] | None = None
    """What the loader gives while nobody steps: ``batches``, ``seconds``, ``batches_per_s``,
    ``samples_per_s`` and the ``epochs`` that began meanwhile; ``None``: not measured."""
    input_checks: dict[str, Any] | None = None
    """What the first batches tell: see ``workbench.recording.batch_checks``."""
    dtypes: list[dict[str, Any]] | None = None
    """What each type costs on the device of the run, against fp32: ``dtype``, ``supported``,
    ``native``, ``matmul_ratio``, ``convolution_ratio``, ``reason``; ``None``: not known here."""
    peak_memory: dict[str, int | None] | None = None
    """Most bytes during the steps of record: ``peak_rss_bytes`` of the process, ``workers_bytes``
    of the loader's processes, ``device_peak_bytes`` of tensors on the device; ``runs_before``: how
    many Runs this process had measured already, whose memory it may still hold."""
    peaks: dict[str, Any] | None = None
    """What the device can do at most, where it was measured on this machine before: FLOPs a second
    by dtype, bytes a second, ``source``; see ``workbench.machine.peaks``."""
    costs: list[dict[str, Any]] | None = None
    """What one step calls, each with the same inputs once: ``name``, ``shapes``, ``types``,
    ``values``, ``outputs``, ``count``, ``kind``, ``flops`` and ``bytes`` of one call (or the
    ``reason`` why they are not known) and ``at``, for every call its place in the step, phase (f, b
    or o: forward, backward, optimizer) and number of its module."""
    cost_step: dict[str, Any] | None = None
    """The step that recorded them: ``seconds``, ``calls``, ``flops``, the paths of its ``modules``
    by number; or the ``reason`` why there was none."""
    loss: float | None = None
    """Of the last step of record; ``None`` where steps give none, or not one number."""
    losses: list[float | None] | None = None
    """Of the first steps of all, warm-up first, one batch after the other: those of two Runs that
    began alike can be compared one by one. Of ranks that divide a batch it is their mean."""
    loss_scale: dict[str, Any] | None = None
    """Gradient scaling over all optimizer steps of the run, also those that were not timed:
    ``steps``, ``scales`` (pairs of a step and the scale from it on), ``skipped_at`` (steps) and
    ``growth_interval``; ``None`` without scaling."""


def encode(record: RunRecord) -> bytes:
    """The text of ``run.json``, indented so that people can read it."""
    return msgspec.json.format(msgspec.json.encode(record, enc_hook=_plain), indent=2)


def _plain(value: Any) -> Any:
    """A number of numpy or torch as the number that it is; of anything else the text."""
    try:
        number = value.item()
    except Exception:  # noqa: BLE001 - of an object of the user's own
        return str(value)
    return number if isinstance(number, bool | int | float) else str(value)


def decode(data: bytes, *, where: str) -> RunRecord:
    """The record that :func:`encode` wrote; ``where`` is named in messages.

    Raises:
        RunError: the text is damaged, or of another schema.
    """
    try:
        schema = msgspec.json.decode(data, type=_AnySchema).schema
        if schema == SCHEMA:
            return _checked(msgspec.json.decode(data, type=RunRecord))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RunError(f"{where} is damaged ({error}): record again.") from error
    raise RunError(
        f"{where} has schema {schema!r}, this version reads {SCHEMA!r}: "
        "open it with the version that wrote it, or record again."
    )


def _checked(record: RunRecord) -> RunRecord:
    """Refuse what no Run of ours says: it was edited by hand, or by somebody else."""
    timings = record.timings
    if timings is not None:
        steps = len(timings.step_ns)
        if sum(timings.blocks) != steps:
            raise ValueError(f"blocks hold {sum(timings.blocks)} steps, and step_ns has {steps}")
        if timings.warmup > steps:
            raise ValueError(f"warmup is {timings.warmup}, and step_ns has {steps}")
        if timings.input_ns and len(timings.input_ns) != steps:
            raise ValueError(f"input_ns has {len(timings.input_ns)} steps, and step_ns {steps}")
    for name in record.traces:
        if name in ("", ".", "..") or any(sign in name for sign in "/\\\0"):
            raise ValueError(f"the trace {name!r} is not the name of a file in its folder")
    check_shapes(record)
    return record


class _AnySchema(msgspec.Struct):
    schema: str = ""
