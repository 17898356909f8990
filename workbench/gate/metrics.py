"""What a gate may judge: one line a metric, in the order in which they are shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from workbench.analysis.causes import CAUSES
from workbench.units import bytes_text, number_text, significant, time_text

Kind = Literal["times", "parts", "value", "count"]
"""``times``: blocks of steps without the profiler. ``parts``: nanoseconds of every profiled step,
told as a share of the step. ``value``: one number a Run. ``count``: the same in every step."""
Worse = Literal["more", "less"]
Unit = Literal["time", "rate", "bytes", "count", "seconds", "times"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number that may become worse."""

    name: str
    title: str
    unit: Unit
    kind: Kind
    worse: Worse = "more"
    allow: float
    """How much worse it may become without anybody minding, as a share; of parts a share of the
    step (own choices; a budget names others)."""
    ignore_below: float = 0.0
    """A smaller difference, in the metric's own unit, is never a failure."""
    assumed_noise: float = 0.0
    """Of single values, what equal Runs are taken to differ by, as a share (own choices)."""
    leads: bool = False
    """Whether the gate as a whole cannot tell when this cannot be told."""

    def text(self, value: float | None) -> str:
        """A value of it for people."""
        if value is None:
            return "not measured"
        return _TEXT[self.unit](value)

    def log_scale(self) -> bool:
        """Whether values are compared as ratios."""
        return self.kind == "times"


_TEXT: dict[str, Callable[[float], str]] = {
    "time": time_text,
    "rate": lambda value: f"{significant(value)}/s",
    "bytes": bytes_text,
    "count": number_text,
    "seconds": lambda value: time_text(value * 1e9),
    "times": lambda value: f"{significant(value)} times",
}

TEN_MICROSECONDS = 10_000.0
"""No test fails for less: the clock, the scheduler and a function call take as long."""


def _part(name: str, title: str) -> Metric:
    return Metric(
        name=name, title=title, unit="time", kind="parts", allow=0.05, ignore_below=TEN_MICROSECONDS
    )


def _value(
    name: str, title: str, unit: Unit, *, allow: float, ignore_below: float, noise: float
) -> Metric:
    return Metric(
        name=name,
        title=title,
        unit=unit,
        kind="value",
        allow=allow,
        ignore_below=ignore_below,
        assumed_noise=noise,
    )


def _count(
    name: str, title: str, allow: float = 0.0, unit: Literal["count", "bytes"] = "count"
) -> Metric:
    return Metric(name=name, title=title, unit=unit, kind="count", allow=allow)


METRICS: tuple[Metric, ...] = (
    Metric(
        name="step_time",
        title="step time",
        unit="time",
        kind="times",
        allow=0.05,
        ignore_below=TEN_MICROSECONDS,
        leads=True,
    ),
    Metric(
        name="throughput", title="throughput", unit="rate", kind="times", worse="less", allow=0.05
    ),
    _part("exposed_input", "exposed input"),
    _part("exposed_communication", "exposed communication"),
    *(
        _part(f"idle_{cause}", f"idle: {cause.replace('_', ' ')}")
        for cause in CAUSES
        if cause != "input"
    ),
    _value("peak_memory", "peak memory", "bytes", allow=0.05, ignore_below=16e6, noise=0.05),
    _value("compile_time", "compile time", "seconds", allow=0.20, ignore_below=1.0, noise=0.20),
    _value("overhead", "cost of profiling", "times", allow=0.50, ignore_below=0.2, noise=0.25),
    _count("kernels_per_step", "kernels a step"),
    _count("launches_per_step", "launches a step"),
    _count("operators_per_step", "operators a step"),
    _count("copied_bytes_per_step", "bytes copied a step", unit="bytes"),
    _count("device_allocations_per_step", "device allocations a step"),
    _count("synchronizations_per_step", "synchronizing calls a step"),
    _count("graph_breaks", "graph breaks"),
    _count("recompiles", "recompilations"),
    _count("instructions_per_step", "instructions a step", allow=0.02),
)
BY_NAME = {metric.name: metric for metric in METRICS}
