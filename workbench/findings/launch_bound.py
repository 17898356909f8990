"""WB201: the device waits because the host launches its work too slowly.

What: kernels are launched into an empty queue, and the device idles while the host runs operators
and launch calls.
Why: the device finishes each kernel before the next one has arrived, so a faster device, or a lower
precision, gains nothing.
What to do: launch fewer and larger kernels: torch.compile, CUDA graphs
(torch.compile(mode="reduce-overhead") or torch.cuda.make_graphed_callables), a larger batch.
When it is wrong: profiled host time is inflated, so without a step time of record the loss is
smaller than shown; and a long launch delay alone is a full queue, which is a busy device. The bound
is the waiting alone: torch.compile also fuses kernels, and can gain more than that.
"""

from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.lost_time import LostTime, worst_device
from workbench.findings.switching import fewer_launches
from workbench.units import share_text

CODE = "WB201"

FRAMEWORK = ("launch", "host_operators")
OUTSIDE = ("host_python", "host_other")
EMPTY_QUEUE_SHARE = 0.50
"""Own choice: from half of the launches on, the queue does not hide the host."""
WARNING_SHARE = 0.10
"""Own choice, as for waiting (TraceML): below it a faster host is hardly measurable."""
CRITICAL_SHARE = 0.20
_COMPILE = (
    'Launch fewer, larger kernels: torch.compile(model), with mode="reduce-overhead" (CUDA graphs) '
    "where shapes are fixed, or a larger batch if memory allows."
)
_GRAPHS = (
    'The model is compiled already: replay it as CUDA graphs (torch.compile(mode="reduce-overhead")'
    ", torch.cuda.make_graphed_callables), or take a larger batch if memory allows."
)
_REST = (
    "Parts of it run compiled already: compile what does not, replay it as CUDA graphs "
    '(torch.compile(mode="reduce-overhead"), torch.cuda.make_graphed_callables) where shapes are '
    "fixed, or take a larger batch if memory allows."
)
LEAST_LAUNCHES = 10
"""Own choice: with fewer launches a step, launching is not what takes the host's time."""


def launch_bound(facts: Facts) -> Finding | None:
    """Fires when the host's work shows as idle time and most launches meet an empty queue."""
    found = worst_device(facts, (*FRAMEWORK, *OUTSIDE))
    if found is None:
        return None
    device, lost = found
    if lost.share <= WARNING_SHARE or not _starved(device):
        return None
    if _small_losses(device) <= WARNING_SHARE:
        return None  # the host does something else: Python (WB209), or one long operator
    return _finding(facts, device, lost)


def _starved(device: DeviceFacts) -> bool:
    launches = device.launches if device.launches_per_step is None else device.launches_per_step
    return (launches or 0) >= LEAST_LAUNCHES and (
        device.empty_queue_share or 0.0
    ) >= EMPTY_QUEUE_SHARE


def _small_losses(device: DeviceFacts) -> float:
    """Share of the steps that many short operators and launch calls take, each by itself little."""
    steady = device.steady
    if steady is None or steady.time_ns <= 0:
        return 0.0
    return sum(steady.short_ns.get(cause, 0) for cause in FRAMEWORK) / steady.time_ns


def _finding(facts: Facts, device: DeviceFacts, lost: LostTime) -> Finding:
    steady = device.steady
    assert steady is not None
    return Finding(
        code=CODE,
        title=f"Launch-bound: the device idles {share_text(lost.share)} of {lost.whole} while the "
        f"host prepares and launches its work; {share_text(device.empty_queue_share)} of the "
        "launches meet an empty queue.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "empty_queue_share": device.empty_queue_share,
            "launches_per_step": device.launches_per_step,
            "short_kernel_share": device.short_kernel_share,
            "busy_share": device.busy_ns / device.window_ns if device.window_ns else None,
            "idle_us": {
                cause: ns / 1000
                for cause in (*FRAMEWORK, *OUTSIDE)
                if (ns := steady.by_cause.get(cause)) is not None
            },
            "operators_us": {name: ns / 1000 for name, ns in steady.places["host_operators"]},
            "steps": lost.steps,
        },
        advice=_advice(facts),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        setting=fewer_launches(facts),
        rank=facts.rank,
        device=device.index,
    )


def _advice(facts: Facts) -> str:
    if facts.effective.get("compile"):
        return _GRAPHS
    return _REST if facts.runs_compiled else _COMPILE
