"""WB209: the device waits for Python code outside the framework's operators.

What: idle time during which the launching thread runs no operator of the framework: the loop's own
Python, logging, metrics, conversions, or another library. On a loop that runs on the CPU: such code
where it takes half of the steps or more.
Why: the device gets its next work only after that code has ended; on the CPU nothing runs
meanwhile.
What to do: move your own code out of the step, do it only every so many steps, or in another
thread or process; of the model's own Python between operators torch.compile is the remedy. Record
with stacks (Record(stacks=True)) to see which line it is.
When it is wrong: recorded stacks slow Python down several times, so the loss is smaller than shown
where no step time of record is known; and a library that no record covers is counted here too. A
thread that waits for a processor, on a busy machine, looks the same.
"""

from collections.abc import Callable

from workbench.analysis.host_code import HostCode
from workbench.findings.finding import DeviceFacts, Facts, Finding
from workbench.findings.lost_time import LEAST_STEPS_WARNING, LostTime, worst_device
from workbench.units import share_text

CODE = "WB209"
Places = tuple[tuple[str, int], ...]

CAUSES = ("host_python", "host_other")
WARNING_SHARE = 0.10
CRITICAL_SHARE = 0.20
"""As for waiting (TraceML)."""
NEVER = 2.0
"""No share reaches it: a share of the CPU's own time says nothing about how much is too much."""
ADVICE = (
    "Your own code, such as logging, metrics and conversions: move it out of the step, do it only "
    "every so many steps, or in another {where}. The model's own Python: torch.compile takes it "
    "away."
)
_STACKS = " Record with Record(stacks=True) to see which line it is."
ON_CPU_SHARE = 0.50
"""Own choice: on the CPU the Python between operators takes 4 to 8 % of recorded steps of small
models; from half on, the loop is mostly something else than the model."""


def host_code(facts: Facts) -> Finding | None:
    """Fires when host code outside operators takes more than 10 % of the steps.

    Idle time of these causes lies before its next launch, so the queue is empty then, however
    full it may be for the other launches: one pause a step is one launch of thousands.
    """
    found = worst_device(facts, CAUSES)
    if found is None:
        return None if facts.devices or facts.voids("devices") else _on_cpu(facts)
    device, lost = found
    if lost.share <= WARNING_SHARE or not lost.steps:
        return None
    return _finding(facts, device, lost)


def _finding(facts: Facts, device: DeviceFacts, lost: LostTime) -> Finding:
    steady = device.steady
    assert steady is not None
    stacks = steady.by_cause.get("host_python") is not None
    places = _together(*(steady.places[cause] for cause in CAUSES))
    where = _where(places, lost.ns, _in_range) if places else ""
    return Finding(
        code=CODE,
        title=f"The device idles {share_text(lost.share)} of {lost.whole} while the host runs "
        f"code outside any operator{where}.",
        verdict="yes",
        severity=lost.severity(WARNING_SHARE, CRITICAL_SHARE),
        evidence={
            "idle_us_per_step": lost.ns / lost.steps / 1000,
            "ranges_us": {name: ns / 1000 for name, ns in places},
            "empty_queue_share": device.empty_queue_share,
            "stacks_recorded": stacks,
            "steps": lost.steps,
        },
        advice=ADVICE.format(where="thread") + ("" if stacks else _STACKS),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        rank=facts.rank,
        device=device.index,
    )


def _on_cpu(facts: Facts) -> Finding | None:
    """The same for a loop without a device, whose thread does one thing after the other."""
    code = facts.host_code
    if code is None or code.steps < LEAST_STEPS_WARNING or code.time_ns <= 0:
        return None
    if code.ns < ON_CPU_SHARE * code.time_ns:
        return None
    lost = _lost_on_cpu(facts, code)
    where = _where(code.places, code.ns, _place) if code.places else ""
    return Finding(
        code=CODE,
        title=f"Code outside any operator takes {share_text(lost.share)} of {lost.whole} on the "
        f"CPU{where}.",
        verdict="yes",
        severity=lost.severity(ON_CPU_SHARE, NEVER),
        evidence={
            "host_us_per_step": code.ns / code.steps / 1000,
            "places_us": {name: ns / 1000 for name, ns in code.places},
            "stacks_recorded": code.stacks,
            "steps": code.steps,
        },
        advice=ADVICE.format(where="process") + ("" if code.stacks else _STACKS),
        share_of_window=lost.share,
        saving_ns_per_step_at_most=lost.saving_ns,
        speedup_at_most=lost.speedup,
        rank=facts.rank,
    )


def _lost_on_cpu(facts: Facts, code: HostCode) -> LostTime:
    """All of it at most, as recorded; without the profiler no more than the whole step."""
    per_step, step = code.ns / code.steps, code.time_ns / code.steps
    if facts.step_ns:
        step = sum(facts.step_ns) / len(facts.step_ns)
    return LostTime(
        ns=code.ns,
        share=code.ns / code.time_ns,
        steps=code.steps,
        per_step_ns=per_step,
        step_ns=step,
        saving_ns=min(per_step, step),
    )


def _together(*parts: Places) -> Places:
    """Every place once, with its time of all parts; longest first."""
    sums: dict[str, int] = {}
    for name, ns in (each for part in parts for each in part):
        sums[name] = sums.get(name, 0) + ns
    return tuple(sorted(sums.items(), key=lambda each: (-each[1], each[0])))


def _where(places: Places, whole: int, named: Callable[[str], str]) -> str:
    """The largest place; only of one with half of the time or more it is said that it has most."""
    name, ns = places[0]
    if 2 * ns >= whole:
        return f", most of it {named(name)}"
    return f", {share_text(ns / whole)} of it {named(name)}"


def _in_range(name: str) -> str:
    return f"in {name}"


def _place(name: str) -> str:
    return name if name.startswith("between ") else f"in {name}"
