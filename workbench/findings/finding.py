"""One finding: a verdict with its evidence and the most that acting on it could gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from workbench.analysis.buckets import Buckets
    from workbench.analysis.compilations import Compilations
    from workbench.analysis.data_parallel import DataParallelUse
    from workbench.analysis.device_allocations import DeviceAllocations
    from workbench.analysis.gradient_syncs import GradientSyncs
    from workbench.analysis.host_code import HostCode
    from workbench.analysis.kept_casts import KeptCasts
    from workbench.analysis.loader_evidence import EpochStart, LoaderStages
    from workbench.analysis.matmul_shapes import MatmulShapes
    from workbench.analysis.matrix_work import MatrixWork
    from workbench.analysis.memory.pressure import MemoryPressure
    from workbench.analysis.optimizer_launches import OptimizerLaunches
    from workbench.analysis.repeated_casts import RepeatedCasts
    from workbench.analysis.scaled_steps import ScaledSteps
    from workbench.analysis.shapes_seen import ShapesSeen
    from workbench.analysis.slow_line import SlowLine
    from workbench.analysis.small_patterns import SmallPatterns
    from workbench.analysis.snapshots.out_of_memory import PostMortem
    from workbench.analysis.steady import SteadyIdle
    from workbench.analysis.sync_calls import SyncCalls

Verdict = Literal["yes", "no", "cannot_tell"]
Severity = Literal["info", "warning", "critical"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
"""From least to most severe."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The loop that a finding speaks of, as its Run tells it: what its bound holds for."""

    run: str
    settings: Mapping[str, Any] | None
    """Those that the Run was made with; ``None`` where Settings do not reach the loop."""
    effective: Mapping[str, Any]
    """What was in force; empty for a trace from elsewhere."""
    environment: Mapping[str, Any]
    median_step_ns: float | None
    mean_step_ns: float | None
    """Both of the steps of record."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a rule says about a Run or trace.

    ``saving_ns_per_step_at_most`` and ``speedup_at_most`` are upper bounds, never promises;
    ``None`` means that no bound could be measured.
    """

    code: str
    title: str
    verdict: Verdict
    severity: Severity
    evidence: Mapping[str, Any]
    advice: str
    share_of_window: float | None = None
    saving_ns_per_step_at_most: float | None = None
    speedup_at_most: float | None = None
    setting: Mapping[str, Any] | None = None
    """A Settings change that answers the finding, as its JSON; ``None`` when no switch does."""
    rank: int | None = None
    device: int | None = None
    call: str | None = None
    """The same in torch's own calls, where the loop is the user's and Settings do not reach it."""
    origin: Origin | None = field(default=None, repr=False, compare=False)
    """Where it was found; ``None`` for one that was made by hand."""

    def to_json(self) -> dict[str, Any]:
        """The finding in the schema of ``workbench analyze --json``."""
        saving = self.saving_ns_per_step_at_most
        return {
            "code": self.code,
            "title": self.title,
            "verdict": self.verdict,
            "severity": self.severity,
            "rank": self.rank,
            "device": self.device,
            "share_of_window": self.share_of_window,
            "saving_us_per_step_at_most": None if saving is None else saving / 1000,
            "speedup_at_most": self.speedup_at_most,
            "evidence": dict(self.evidence),
            "advice": self.advice,
            "setting": None if self.setting is None else dict(self.setting),
        }


@dataclass(frozen=True, kw_only=True)
class CopyFacts:
    """Copies from the host's memory to one device in its window."""

    total_ns: int
    exposed_ns: int
    """While neither compute nor communication runs."""
    pageable_ns: int
    """Of the total, copies whose name says that the host's memory is pageable."""
    bytes: int | None
    gb_s: float | None


@dataclass(frozen=True, kw_only=True)
class DeviceFacts:
    """What the trace says about one device inside the window."""

    index: int
    window_ns: int
    busy_ns: int
    idle_ns: int
    idle_by_cause: Mapping[str, int | None]
    exposed_communication_ns: int
    exposed_memory_ns: int
    steady_input_ns: int | None = None
    """Of the idle time for input, the part in the steps whose times are ``trace_step_ns``."""
    steady: SteadyIdle | None = None
    """Idle time of the steps that count, first uses left out."""
    copies: CopyFacts | None = None
    """``None`` where nothing was copied from the host."""
    launches: int | None = None
    """Launch calls in the window's steps; without steps in the whole trace."""
    launches_per_step: float | None = None
    empty_queue_share: float | None = None
    """Share of launches at whose end nothing earlier was unfinished."""
    short_kernel_share: float | None = None
    """Share of launches whose call lasts longer than the work that it launched."""
    type: str = "cuda"
    name: str = ""
    arch: str = ""
    """Compute capability such as 8.0, or the gfx target."""


@dataclass(frozen=True, kw_only=True)
class CommunicationFacts:
    """Communication in the window of one device, or of the loop's thread without one."""

    device: int | None
    window_ns: int
    exposed_wait_ns: int | None
    """Waiting for late ranks; ``None`` when no other rank was seen."""
    exposed_transfer_ns: int
    calls: int
    exposed_calls: int
    """Calls of which some part is exposed."""
    largest: str | None = None
    """The collective with the most exposed time."""
    largest_exposed_ns: int = 0
    ranks: int = 1
    """Ranks that were seen; of more than one an undivided wait means sends and receives."""


@dataclass(frozen=True, kw_only=True)
class StragglerFacts:
    """This rank is the one that the others wait for."""

    wait_deficit_ns_per_step: float
    """How much less it waits than the median rank."""
    step_ns: float
    """Median step time of all ranks, under the profiler."""
    ranks: int
    steps: int | None
    phase: str | None
    excess_ns_per_step: float | None
    """How much longer than the others it takes in that phase."""
    others_wait_ns_per_step: float | None = None
    """How much longer than this rank the median of the others waits."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that a rule may look at, for one rank; what was not measured is ``None``.

    Times are nanoseconds. ``step_ns`` and ``input_ns`` are the record: measured without the
    profiler, warm-up left out, one value a step. What a trace alone cannot give stays ``None``.
    """

    rank: int | None = None
    trace_step_ns: tuple[int, ...] | None = None
    """Step times seen in the trace, warm-up left out."""
    trace_input_wait_ns: int | None = None
    trace_exposed_input_ns: int | None = None
    trace_input_batches: int | None = None
    trace_window_ns: int | None = None
    """Window of the (first) device; on CPU-only traces the host steps."""
    trace_steps: int | None = None
    devices: tuple[DeviceFacts, ...] = ()
    host_breakdown_ns: Mapping[str, int | None] | None = None
    communication: tuple[CommunicationFacts, ...] = ()
    straggler: StragglerFacts | None = None
    """``None`` for every rank but the straggler."""
    trust_ok: bool = True
    violations: tuple[Any, ...] = ()
    """``trace.table.Violation`` records."""
    step_ns: tuple[int, ...] | None = None
    input_ns: tuple[int, ...] | None = None
    block_steps: tuple[int, ...] = ()
    """Of ``step_ns``, those of each block that was measured without a pause."""
    block_medians_ns: tuple[float, ...] | None = None
    """Median step of each consecutive measured block: the A/A pairs."""
    noise_floor: float | None = None
    """Relative spread of this machine's A/A pairs."""
    effective: Mapping[str, Any] = field(default_factory=dict)
    load: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    garbage_collection: Mapping[str, Any] | None = None
    compilation: Mapping[str, Any] | None = None
    overhead_ratio: float | None = None
    bounds_ns: Mapping[str, float | None] | None = None
    """Per cause of idle time what a step saves at most without it, by replaying the step."""
    sync_calls: SyncCalls | None = None
    optimizer: OptimizerLaunches | None = None
    compilations: Compilations | None = None
    runs_compiled: bool = False
    """Whether the trace shows code that torch.compile made, whoever asked for it."""
    allocations: DeviceAllocations | None = None
    shapes_seen: ShapesSeen | None = None
    host_code: HostCode | None = None
    """On the loop's thread, where no device was recorded."""
    slow_line: SlowLine | None = None
    """The user's function that makes one step slow; ``None`` without stacks."""
    matmuls: MatmulShapes | None = None
    casts: RepeatedCasts | None = None
    matrix_work: tuple[MatrixWork, ...] = ()
    """Products, convolutions and attention by type, per device or of the host."""
    scaled_steps: ScaledSteps | None = None
    small_patterns: SmallPatterns | None = None
    kept_casts: KeptCasts | None = None
    peak_bytes: int | None = None
    memory_pressure: MemoryPressure | None = None
    """The memory that grows most beyond chance, else the fullest."""
    post_mortem: PostMortem | None = None
    """The last out-of-memory event of a memory snapshot."""
    dtypes: tuple[Mapping[str, Any], ...] = ()
    """What each type costs on the device of the Run, as its record holds it."""
    loss_scale: Mapping[str, Any] | None = None
    """Gradient scaling over the optimizer steps of the Run, as its record holds it."""
    gradient_syncs: GradientSyncs | None = None
    buckets: Buckets | None = None
    """Gradient buckets against backward; ``None`` where no gradients were summed over ranks."""
    data_parallel: DataParallelUse | None = None
    """What nn.DataParallel does in a step; ``None`` where it was not used."""
    host_backend_bytes: int | None = None
    """Bytes that a backend of the host (gloo, MPI) moved while a device worked, a step."""
    replay_step_ns: tuple[int, ...] | None = None
    """Steps without the profiler on batches at hand, the loader at rest."""
    loader_alone_batch_ns: float | None = None
    """Time per batch of the loader while nobody steps."""
    stalls_ns: Mapping[str, int | None] | None = None
    """The exposed wait for input by what it waited for; the parts sum to it."""
    stalls_other_ns: Mapping[str, int] | None = None
    """Its part ``other`` by reason: see ``analysis.stalls.parts.OTHER``."""
    loader_stages: LoaderStages | None = None
    epoch_starts: tuple[EpochStart, ...] = ()
    loader_system: Mapping[str, Any] | None = None
    """Processes and machine meanwhile: see ``analysis.loader_evidence.loader_system``."""
    input_checks: Mapping[str, Any] | None = None
    """What the first batches told: shared memory that they need, and whether they repeat."""
    warnings: tuple[str, ...] = ()
    """Distinct warnings that the user's code raised during the run."""

    def voids(self, what: str) -> bool:
        """Whether a violation makes the named numbers void."""
        return any(what in violation.voids for violation in self.violations)
