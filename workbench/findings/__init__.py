"""Rules that turn measured facts into findings, worst first."""

from collections.abc import Callable

from workbench.findings.allocator_churn import allocator_churn
from workbench.findings.compile_warmup import compile_break_even, compile_warmup
from workbench.findings.exposed_communication import exposed_communication
from workbench.findings.extra_syncs import extra_syncs
from workbench.findings.finding import (
    SEVERITIES,
    CommunicationFacts,
    CopyFacts,
    DeviceFacts,
    Facts,
    Finding,
    Origin,
    StragglerFacts,
)
from workbench.findings.garbage import garbage
from workbench.findings.growing_casts import growing_casts
from workbench.findings.host_code import host_code
from workbench.findings.imitated_precision import imitated_precision
from workbench.findings.input_bound import input_bound
from workbench.findings.kernel_gaps import kernel_gaps
from workbench.findings.late_loading import late_loading
from workbench.findings.launch_bound import launch_bound
from workbench.findings.loss_scale import loss_scale
from workbench.findings.memory_limit import memory_limit
from workbench.findings.merging import merge_ranks
from workbench.findings.misaligned_matmul import misaligned_matmul
from workbench.findings.moved_wait import moved_wait
from workbench.findings.new_shapes import new_shapes
from workbench.findings.noisy_machine import noisy_machine
from workbench.findings.parallel_habits import parallel_habits
from workbench.findings.profiler_overhead import profiler_overhead
from workbench.findings.recompiles import recompiles
from workbench.findings.repeated_casts import repeated_casts
from workbench.findings.repeated_data import changed_count, repeated_data
from workbench.findings.sample_cost import sample_cost
from workbench.findings.slow_copies import slow_copies
from workbench.findings.slow_storage import slow_storage
from workbench.findings.small_shared_memory import small_shared_memory
from workbench.findings.small_wastes import small_wastes
from workbench.findings.step_drift import step_drift
from workbench.findings.straggler import CODE as STRAGGLER
from workbench.findings.straggler import straggler, with_own
from workbench.findings.switching import unless_in_force
from workbench.findings.sync_in_loop import sync_in_loop
from workbench.findings.thread_oversubscription import thread_oversubscription
from workbench.findings.unbatched_optimizer import unbatched_optimizer
from workbench.findings.untrusted_profile import untrusted_profile
from workbench.findings.useless_amp import useless_amp
from workbench.findings.worker_count import worker_count
from workbench.findings.worker_start import worker_start

Rule = Callable[[Facts], Finding | None]

RULES: tuple[Rule, ...] = (
    untrusted_profile,
    noisy_machine,
    repeated_data,
    small_shared_memory,
    input_bound,
    sample_cost,
    slow_storage,
    worker_start,
    worker_count,
    thread_oversubscription,
    slow_copies,
    launch_bound,
    kernel_gaps,
    sync_in_loop,
    unbatched_optimizer,
    compile_warmup,
    recompiles,
    new_shapes,
    host_code,
    garbage,
    late_loading,
    memory_limit,
    allocator_churn,
    step_drift,
    imitated_precision,
    useless_amp,
    misaligned_matmul,
    repeated_casts,
    loss_scale,
    small_wastes,
    growing_casts,
    exposed_communication,
    straggler,
    parallel_habits,
    extra_syncs,
    profiler_overhead,
)
"""Every rule, in the order in which findings of equal weight are listed."""

RULES_OF_TWO: tuple[Callable[..., Finding | None], ...] = (
    moved_wait,
    changed_count,
    compile_break_even,
)
"""Rules that compare two Runs; they take the facts of both and what is known of their times."""

__all__ = [
    "RULES",
    "RULES_OF_TWO",
    "CommunicationFacts",
    "CopyFacts",
    "DeviceFacts",
    "Facts",
    "Finding",
    "Origin",
    "StragglerFacts",
    "changed_count",
    "compile_break_even",
    "diagnose",
    "merge_ranks",
    "moved_wait",
    "weight",
]


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """All findings for one rank, worst first; a rule that stays silent adds nothing."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    found = [with_own(each, found) if each.code == STRAGGLER else each for each in found]
    found = [unless_in_force(each, facts) for each in found]
    return tuple(sorted(found, key=weight))


def weight(finding: Finding) -> tuple[int, int, float]:
    """What sorts findings worst first: severity, verdict, then share of the window."""
    verdicts = {"yes": 0, "cannot_tell": 1, "no": 2}
    severity = -SEVERITIES.index(finding.severity)
    return (severity, verdicts[finding.verdict], -(finding.share_of_window or 0.0))
