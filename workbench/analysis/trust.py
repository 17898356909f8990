"""What a trace can and cannot carry: every check that comes before a verdict.

A violation voids only what depends on it, and only when it is grave: named clocks and unrecorded
device work always are, most others from 1 % of the device time on. What is legal is not listed:
pre-roll, launches during graph capture, programmatic launches, overlaps within one graph launch or
of at most 1 us.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.devices import described_devices, device_indices, work_rows
from workbench.analysis.intervals import contains, total, union
from workbench.analysis.launches import LARGEST_OFFSET_NS, Launches
from workbench.analysis.missing_kernels import (
    capture_spans,
    launch_calls,
    launches_without_kernel,
)
from workbench.analysis.overlaps import overlapping_rows
from workbench.analysis.record_checks import (
    doubled_records,
    graph_replay,
    shared_ids,
    unknown_categories,
)
from workbench.analysis.steps import Steps
from workbench.analysis.unrecorded_work import unexplained_waits
from workbench.analysis.window import before_capture
from workbench.trace.table import Kind, Trace, Violation

GRAVE_SHARE = 0.01
"""Share of device time from which a violation makes the trace untrusted."""

ALWAYS_GRAVE = frozenset(
    {
        "clock",
        "unrecorded_device_work",
        "device_not_recorded",
        "truncated",
        "missing_ranks",
        "clock_bases",
        "second_profiler",
        "second_list",
        "wrong_checksum",
    }
)
NEVER_GRAVE = frozenset(
    {"repaired_json", "graph_replay", "unknown_categories", "several_recordings"}
)

CAUSES = ("causes", "queue", "operator_device_time")
BUSY = ("busy", "idle", *CAUSES, "kernels")
DEVICES = ("devices", *BUSY)
"""What a violation may void: ``devices`` is every number of every device."""


@dataclass(frozen=True, kw_only=True)
class Trust:
    """The outcome of all checks."""

    ok: bool
    """False when a violation is grave; a cut last step alone is not."""
    violations: tuple[Violation, ...]

    def voids(self, what: str) -> bool:
        """Whether a grave violation makes the named numbers void."""
        return any(what in violation.voids for violation in self.violations)


def check_trust(
    trace: Trace, launches: Launches, steps: Steps | None, *, on_cpu: bool = False
) -> Trust:
    """Run every check on one trace, the reader's own findings first.

    Args:
        trace: The event table.
        launches: The join of device work to its launching calls.
        steps: The steps of the loop, if the trace marks any.
        on_cpu: The loop is known to run on the CPU: that accelerators of the machine show no work
            is right then.
    """
    found = [
        *trace.violations,
        *_device_not_recorded(trace, on_cpu=on_cpu),
        *_clock(launches),
        *_missing_launch(trace, launches),
        *_missing_kernel(trace, launches),
        *_unrecorded_device_work(trace, launches, steps),
        *doubled_records(trace),
        *_stream_overlap(trace, launches),
        *_absurd_duration(trace),
        *_steps_incomplete(steps),
        *_several_recordings(steps),
        *shared_ids(trace),
        *graph_replay(trace, launches),
        *unknown_categories(trace),
    ]
    judged = tuple(v if _grave(v, steps) else replace(v, voids=()) for v in found)
    return Trust(ok=not any(_grave(v, steps) for v in found), violations=judged)


def _grave(violation: Violation, steps: Steps | None) -> bool:
    if violation.code in ALWAYS_GRAVE:
        return True
    if violation.code == "steps_incomplete":
        return steps is not None and _numbers_missing(steps) > 0
    if violation.code in NEVER_GRAVE or violation.share is None:
        return False
    return violation.share > GRAVE_SHARE


def _device_not_recorded(trace: Trace, *, on_cpu: bool) -> Iterator[Violation]:
    if len(work_rows(trace, None)):
        return
    calls = launch_calls(trace)
    launched = int((~contains(capture_spans(trace), trace.events.ts[calls])).sum())
    if not launched and (on_cpu or not described_devices(trace)):
        return
    shown = f"{launched} kernel launches" if launched else "The machine has an accelerator"
    yield Violation(
        code="device_not_recorded",
        message=(
            f"{shown}, but no device record: what the device did is not measured. Usual reasons: "
            "no permission for performance counters, a limit of the virtual machine, another "
            "profiler, or that CPU activity alone was asked for."
        ),
        count=max(launched, 1),
        voids=(*DEVICES, "step_time") if launched else DEVICES,
    )


def _clock(launches: Launches) -> Iterator[Violation]:
    shifted = [str(device) for device, ok in launches.clock_ok.items() if not ok]
    if shifted:
        yield Violation(
            code="clock",
            message=(
                f"Clocks of host and device {', '.join(shifted)} differ by more than "
                f"{LARGEST_OFFSET_NS // 1_000_000} ms: which call a gap waited for is unknown. "
                "Record again, with one profiler and after a warm-up step."
            ),
            count=len(shifted),
            voids=CAUSES,
        )


def _missing_launch(trace: Trace, launches: Launches) -> Iterator[Violation]:
    rows = work_rows(trace, None)
    lost = rows[(launches.launch[rows] < 0) & ~before_capture(trace, launches)[rows]]
    if len(lost):
        yield Violation(
            code="missing_launch",
            message=(
                f"{len(lost)} of {len(rows)} device records have no launch record: what their "
                f"gaps waited for is unknown. {_why_unjoined(trace)}"
            ),
            count=len(lost),
            share=_share_of_device_time(trace, lost),
            voids=CAUSES,
        )


def _why_unjoined(trace: Trace) -> str:
    """What to do about device records without a launch record."""
    if not len(trace.events.rows(Kind.OPERATOR, Kind.RUNTIME, Kind.DRIVER)):
        return "Record host and device activities together."
    return (
        "The host was recorded, but no call of it carries their correlation: they were launched "
        "before the recording began, or what wrote the file leaves it out."
    )


def _missing_kernel(trace: Trace, launches: Launches) -> Iterator[Violation]:
    lost = launches_without_kernel(trace, launches)
    if len(lost) and len(work_rows(trace, None)):
        calls = launch_calls(trace)
        outside = int((~contains(capture_spans(trace), trace.events.ts[calls])).sum())
        yield Violation(
            code="missing_kernel",
            message=(
                f"{len(lost)} of {outside} launches have no device record: busy time is at least, "
                "idle time at most what is shown. Record fewer steps, so that no buffer overflows."
            ),
            count=len(lost),
            share=len(lost) / max(outside, 1),
            voids=BUSY,
        )


def _unrecorded_device_work(
    trace: Trace, launches: Launches, steps: Steps | None
) -> Iterator[Violation]:
    count = longest = lost = 0
    span = 1
    for device in device_indices(trace):
        if launches.clock_ok[device]:
            bare = steps is None
            waits, extent = unexplained_waits(trace, launches, device, all_of_it=bare)
            count += len(waits)
            lost += int(waits.sum())
            longest = max(longest, int(waits.max(initial=0)))
            span += extent
    if count:
        often, most = ("Once", "for") if count == 1 else (f"{count} times", "up to")
        longest_text = f"{most} {longest / 1e6:.1f}"
        yield Violation(
            code="unrecorded_device_work",
            message=(
                f"{often} the device seemed idle for more than 1 ms although its next work had "
                f"been launched ({longest_text} ms): it did something that the "
                "trace does not hold, such as work launched before the recording began."
            ),
            count=count,
            share=min(1.0, lost / span),
            voids=CAUSES,
        )


def _stream_overlap(trace: Trace, launches: Launches) -> Iterator[Violation]:
    rows = overlapping_rows(trace, launches)
    if len(rows):
        yield Violation(
            code="stream_overlap",
            message=(
                f"{len(rows)} device records begin before the one ahead of them on the same "
                "stream has ended: sums over kernels count that time twice, unions do not."
            ),
            count=len(rows),
            share=_share_of_device_time(trace, rows),
            voids=("kernels",),
        )


def _absurd_duration(trace: Trace) -> Iterator[Violation]:
    """Device records longer than everything the host did, and than a second."""
    events = trace.events
    host = events.rows(Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON)
    rows = work_rows(trace, None)
    if not len(rows) or not len(host):
        return
    extent = int(events.end[host].max() - events.ts[host].min())
    absurd = rows[events.dur[rows] > max(extent, 1_000_000_000)]
    if len(absurd):
        yield Violation(
            code="absurd_duration",
            message=(
                f"{len(absurd)} device records last longer than the whole recording of the host: "
                "their times are wrong. Leave them out or record again."
            ),
            count=len(absurd),
            share=_share_of_device_time(trace, absurd),
            voids=DEVICES,
        )


def _steps_incomplete(steps: Steps | None) -> Iterator[Violation]:
    if steps is None:
        return
    missing = _numbers_missing(steps)
    said = []
    if steps.dropped:
        said.append(f"The capture ended inside {steps.dropped} step, which is left out.")
    if missing:
        said.append(f"{missing} step numbers are missing in between.")
    if said:
        yield Violation(
            code="steps_incomplete",
            message=(
                f"{' '.join(said)} Mark every step, and let the loop reach the end of the "
                "recorded window."
            ),
            count=steps.dropped + missing,
            voids=("steps",),
        )


def _several_recordings(steps: Steps | None) -> Iterator[Violation]:
    if steps is not None and steps.elsewhere:
        yield Violation(
            code="several_recordings",
            message=(
                f"The file holds several recordings one after another: {len(steps)} steps of one "
                f"are judged, {steps.elsewhere} of the others left out. Numbers of the whole "
                "recording hold the pauses between them."
            ),
            count=steps.elsewhere,
        )


def _numbers_missing(steps: Steps) -> int:
    jumps = np.diff(np.array(steps.numbers, np.int64))
    return int((jumps[jumps > 1] - 1).sum())


def _share_of_device_time(trace: Trace, rows: NDArray[np.intp]) -> float:
    """Summed over devices: the union of these rows over the union of all work."""
    events = trace.events
    part = whole = 0
    for device in device_indices(trace):
        mine = rows[events.device[rows] == device]
        everything = work_rows(trace, device)
        part += total(union(events.ts[mine], events.end[mine]))
        whole += total(union(events.ts[everything], events.end[everything]))
    return part / whole if whole else 0.0
